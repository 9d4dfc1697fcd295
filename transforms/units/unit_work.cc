// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/unit_work.h"

#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"
#include "rill/transforms/leaves.h"

namespace rill::transforms_internal {

absl::StatusOr<Tensor> UnitWork::Read(absl::string_view key,
                                      const TensorDict& dict) const {
  const absl::StatusOr<Tensor> leaf = dict.Get(key);
  RILL_RETURN_IF_ERROR(leaf.status()) << caller_;
  const Device device = uploads_.stream().device();
  if (leaf->device() == device && leaf->is_contiguous()) return *leaf;
  return FailedPrecondition(
      caller_, ": \"", key, "\": got ", leaf->DebugString(),
      ", want a contiguous tensor on ", device.ToString());
}

absl::StatusOr<Tensor> UnitWork::Read(absl::string_view key, DType dtype,
                                      const Shape& shape,
                                      const TensorDict& dict) const {
  RILL_ASSIGN_OR_RETURN(Tensor leaf, Read(key, dict));
  RILL_RETURN_IF_ERROR(CheckLeaf(caller_, key, leaf, dtype, shape));
  return leaf;
}

absl::StatusOr<Tensor> UnitWork::Write(absl::string_view key, DType dtype,
                                       const Shape& shape, TensorDict* batch) {
  const Tensor* const there = batch->Find(key);
  const Tensor before = there == nullptr ? Tensor() : *there;
  RILL_ASSIGN_OR_RETURN(
      Tensor leaf,
      WriteLeaf(key, dtype, shape,
                {.memory = {uploads_.stream().device(), MemoryKind::kDevice},
                 .is_passed_in = true},
                batch));
  if (before.is_valid() && before.raw_data() != leaf.raw_data()) {
    uploads_.Keep(before.buffer());
  }
  return leaf;
}

void UnitWork::Leave() {
  for (auto& launch : launches_) uploads_.Behind(std::move(launch));
  launches_.clear();
}

absl::Status UnitWork::Run() {
  Leave();
  return uploads_.Send();
}

}  // namespace rill::transforms_internal
