// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/lent_array.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"

namespace rill::envs_internal {
namespace {

absl::Status Refuse(absl::string_view key, absl::string_view got,
                    absl::string_view want) {
  return InvalidArgument("DeviceSimulator::Lend: leaf \"", key, "\": got ", got,
                         ", want ", want);
}

std::string Address(const Tensor& tensor) {
  return absl::StrFormat("%s at %p", DTypeName(tensor.dtype()),
                         static_cast<const void*>(tensor.raw_data()));
}

// [lanes, 1] of [lanes].
bool LacksLastOne(const Shape& lent, const Shape& shape) {
  const int rank = lent.rank();
  return shape.rank() == rank + 1 && shape[rank] == 1 && shape.StartsWith(lent);
}

}  // namespace

absl::StatusOr<Tensor> FindLent(const TensorDict& lent, absl::string_view key,
                                const Shape& shape, Device device) {
  const Tensor* const found = lent.Find(key);
  if (found == nullptr) {
    return Refuse(key,
                  absl::StrCat("none among \"",
                               absl::StrJoin(lent.LeafKeys(), "\", \""), "\""),
                  absl::StrCat("an array ", shape.ToString()));
  }
  if (found->shape() != shape && !LacksLastOne(found->shape(), shape)) {
    return Refuse(key, absl::StrCat("shape ", found->shape().ToString()),
                  absl::StrCat(shape.ToString(), ", lanes first"));
  }
  // Pinned memory has a device too, but a simulator's array must lie on it.
  const Device lies_on = found->is_host() ? Device::Cpu() : found->device();
  if (lies_on != device) {
    return Refuse(key, absl::StrCat("an array on ", lies_on.ToString()),
                  absl::StrCat(device.ToString(), " as EnvSpec::device"));
  }
  if (!found->is_contiguous()) {
    return Refuse(
        key,
        absl::StrCat("byte strides [",
                     absl::StrJoin(found->strides_bytes(), ", "), "] of ",
                     DTypeName(found->dtype()), found->shape().ToString()),
        "a contiguous array; copy it to one in the simulator");
  }
  // Contiguous, so [lanes] and [lanes, 1] are the same bytes.
  return found->ViewAs(shape);
}

absl::Status CheckSameArray(absl::string_view key, const Tensor& lent,
                            const Tensor& leaf) {
  if (lent.raw_data() == leaf.raw_data() && lent.dtype() == leaf.dtype()) {
    return absl::OkStatus();
  }
  return Refuse(key, Address(lent),
                absl::StrCat("the array that was lent first, ", Address(leaf),
                             "; fill it in place, or set "
                             "DeviceEnvOptions::fills_in_place to false"));
}

}  // namespace rill::envs_internal
