// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/device_leaves.h"

#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/specs/bound_rows.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/element_copies.h"

namespace rill::transforms_internal {

absl::StatusOr<Tensor> ReadDeviceLeaf(absl::string_view caller,
                                      absl::string_view key,
                                      const TensorDict& dict,
                                      DeviceWork::Call* call) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, GetLeaf(caller, key, dict));
  RILL_RETURN_IF_ERROR(CheckLiesOn(caller, key, leaf, call->stream().device()));
  call->Keep(leaf);
  if (leaf.is_contiguous()) return leaf;
  RILL_ASSIGN_OR_RETURN(const Tensor copy,
                        call->Take(leaf.dtype(), leaf.shape()));
  ElementCopies copies(&call->stream());
  RILL_RETURN_IF_ERROR(copies.Add(leaf, copy));
  RILL_RETURN_IF_ERROR(copies.Launch());
  return copy;
}

absl::StatusOr<Tensor> ReadDeviceLeaf(absl::string_view caller,
                                      absl::string_view key, DType dtype,
                                      const Shape& shape,
                                      const TensorDict& dict,
                                      DeviceWork::Call* call) {
  RILL_ASSIGN_OR_RETURN(const Tensor found, GetLeaf(caller, key, dict));
  RILL_RETURN_IF_ERROR(CheckLeaf(caller, key, found, dtype, shape));
  return ReadDeviceLeaf(caller, key, dict, call);
}

absl::StatusOr<Tensor> UpdateDeviceLeaf(absl::string_view caller,
                                        absl::string_view key, DType dtype,
                                        const Shape& shape,
                                        DeviceWork::Call* call,
                                        TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, GetLeaf(caller, key, *dict));
  const Device device = call->stream().device();
  RILL_RETURN_IF_ERROR(CheckLeaf(caller, key, leaf, dtype, shape));
  RILL_RETURN_IF_ERROR(CheckLiesOn(caller, key, leaf, device));
  if (MayReuse(
          leaf, dtype, shape, {},
          {.memory = {.device = device, .memory_kind = MemoryKind::kDevice},
           .is_passed_in = true})) {
    return leaf;
  }
  call->Keep(leaf);
  RILL_ASSIGN_OR_RETURN(Tensor copy, call->Take(dtype, shape));
  ElementCopies copies(&call->stream());
  RILL_RETURN_IF_ERROR(copies.Add(leaf, copy));
  RILL_RETURN_IF_ERROR(copies.Launch());
  RILL_RETURN_IF_ERROR(dict->Set(key, copy));
  return copy;
}

}  // namespace rill::transforms_internal
