// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/replaced_leaves.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "rill/specs/bound_rows.h"

namespace rill::replay_internal {

// A transform may have given the tensor another key or shape.
int64_t ReplacedLeaves::HoldersIn(const Leaf& leaf, const Tensor& tensor,
                                  const TensorDict& batch) const {
  int64_t holders = 0;
  if (tensor.buffer().use_count() == 1) return holders;
  batch.ForEachLeaf([&](absl::string_view key, const Tensor& held) {
    if (held.buffer() != tensor.buffer()) return;
    for (const Leaf& other : leaves_) {
      // One that is read into itself.
      if (other.key == key && &other != &leaf) return;
    }
    ++holders;
  });
  return holders;
}

void ReplacedLeaves::PutBack(TensorDict* batch, std::vector<Tensor>* dropped) {
  const int rank = batch->batch_shape().rank();
  for (Leaf& leaf : leaves_) {
    Tensor tensor = std::exchange(leaf.tensor, Tensor());
    if (dropped != nullptr && tensor.is_valid()) dropped->push_back(tensor);
    // Put back only where nobody else holds the bytes and the rows are as many.
    // Whether it fits a leaf is checked by the read.
    if (!tensor.is_valid() || batch->is_locked() ||
        tensor.shape().rank() < rank ||
        !(tensor.shape().Prefix(rank) == batch->batch_shape()) ||
        !MayReuse(tensor, tensor.dtype(), tensor.shape(), {},
                  {.memory = {tensor.device(), tensor.is_host()
                                                   ? MemoryKind::kPageable
                                                   : MemoryKind::kDevice},
                   .is_passed_in = true}) ||
        tensor.buffer().use_count() !=
            (dropped == nullptr ? 1 : 2) + HoldersIn(leaf, tensor, *batch)) {
      continue;
    }
    const Tensor* const there = batch->Find(leaf.key);
    if (there != nullptr && there->dtype() == tensor.dtype() &&
        there->shape() == tensor.shape()) {
      continue;
    }
    // A dictionary under the key stays; then the read makes a tensor.
    const bool is_back = batch->Set(leaf.key, std::move(tensor)).ok();
    if (is_back && dropped != nullptr) dropped->pop_back();
  }
}

void ReplacedLeaves::BeginTransforms(const TensorDict& batch) {
  bool are_known = batch.num_leaves() == static_cast<int64_t>(leaves_.size());
  for (Leaf& leaf : leaves_) {
    const Tensor* const there = batch.Find(leaf.key);
    leaf.tensor = there == nullptr ? Tensor() : *there;
    are_known = are_known && there != nullptr;
  }
  if (are_known) return;
  leaves_.clear();
  batch.ForEachLeaf([&](absl::string_view key, const Tensor& tensor) {
    leaves_.push_back({std::string(key), tensor});
  });
}

void ReplacedLeaves::EndTransforms(const TensorDict& batch) {
  for (Leaf& leaf : leaves_) {
    const Tensor* const there = batch.Find(leaf.key);
    // The transforms left the leaf in place, so the batch itself has the
    // tensor.
    if (there != nullptr && there->raw_data() == leaf.tensor.raw_data() &&
        there->shape() == leaf.tensor.shape()) {
      leaf.tensor = Tensor();
    }
  }
}

}  // namespace rill::replay_internal
