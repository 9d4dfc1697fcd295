// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/in_place_check.h"

#include <cstdint>

#include "rill/base/status_macros.h"

namespace rill {

InPlaceCheck::InPlaceCheck(const TensorDict& step) {
  step.ForEachLeaf([this](absl::string_view key, const Tensor& tensor) {
    leaves_.push_back({.key = std::string(key), .tensor = tensor});
  });
}

absl::Status InPlaceCheck::Check(absl::string_view who,
                                 const TensorDict& step) const {
  for (const Leaf& leaf : leaves_) {
    const Tensor* tensor = step.Find(leaf.key);
    if (tensor != nullptr && tensor->raw_data() == leaf.tensor.raw_data() &&
        tensor->dtype() == leaf.tensor.dtype() &&
        tensor->shape() == leaf.tensor.shape()) {
      continue;
    }
    return InvalidArgument(
        who, ": leaf \"", leaf.key, "\": got ",
        tensor == nullptr ? "none" : "another tensor",
        ", want the given one filled in place; use CopyFrom or data<T>()");
  }
  const auto num_leaves = static_cast<int64_t>(leaves_.size());
  // All known leaves are there, so another number means more of them.
  if (step.num_leaves() != num_leaves) {
    return InvalidArgument(who, ": got ", step.num_leaves(),
                           " leaves, want the ", num_leaves, " of MakeStep");
  }
  return absl::OkStatus();
}

}  // namespace rill
