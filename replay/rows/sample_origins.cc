// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rows/sample_origins.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"

namespace rill::replay_internal {
namespace {

constexpr absl::string_view kSequenceKey = "sequence_id";
constexpr absl::string_view kAnchorKey = "anchor_index";

}  // namespace

Origins::Origins(absl::Span<const absl::string_view> keys,
                 const TensorDict& batch)
    : keys_(keys.first(std::min(keys.size(), kMaxKeys))),
      shape_(batch.batch_shape()) {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (const Tensor* leaf = batch.Find(keys_[i])) leaves_[i] = *leaf;
  }
}

absl::Status Origins::PutBack(TensorDict* batch) const {
  // A transform that changes the number of rows makes other rows, which have no
  // such origin.
  if (!(batch->batch_shape() == shape_)) return absl::OkStatus();
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (!leaves_[i].is_valid()) continue;
    const Tensor* const now = batch->Find(keys_[i]);
    // A cast of all leaves is none of slots and generations.
    const bool is_cast = now != nullptr && now->dtype() != leaves_[i].dtype() &&
                         leaves_[i].dtype() == DType::kInt64;
    if (batch->Contains(keys_[i]) && !is_cast) continue;
    Tensor leaf = leaves_[i];
    // Where a transform has moved the batch, the leaf follows.
    if (batch->device().has_value()) {
      RILL_ASSIGN_OR_RETURN(leaf, leaf.To(*batch->device()));
    }
    RILL_RETURN_IF_ERROR(batch->Set(keys_[i], std::move(leaf)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> NumbersOf(absl::string_view caller,
                                 const TensorDict& batch,
                                 absl::string_view key) {
  absl::StatusOr<Tensor> leaf = batch.Get(key);
  RILL_RETURN_IF_ERROR(leaf.status()) << caller << ": want a sample's leaves";
  if (leaf->dtype() != DType::kInt64) {
    return InvalidArgument(caller, ": \"", key, "\": got ",
                           DTypeName(leaf->dtype()), ", want int64");
  }
  RILL_ASSIGN_OR_RETURN(Tensor on_host, leaf->To(Device::Cpu()));
  return on_host.Contiguous();
}

absl::StatusOr<std::vector<Draw>> DrawsOf(absl::string_view caller,
                                          const TensorDict& sample) {
  RILL_ASSIGN_OR_RETURN(const Tensor index,
                        NumbersOf(caller, sample, kIndexKey));
  RILL_ASSIGN_OR_RETURN(const Tensor generations,
                        NumbersOf(caller, sample, kGenerationKey));
  if (index.num_elements() != generations.num_elements()) {
    return InvalidArgument(caller, ": \"", kGenerationKey, "\": got ",
                           generations.shape().ToString(),
                           ", want the shape of \"", kIndexKey, "\", ",
                           index.shape().ToString());
  }
  std::vector<Draw> draws(static_cast<size_t>(index.num_elements()));
  for (size_t i = 0; i < draws.size(); ++i) {
    draws[i].slot = index.data<int64_t>()[i];
    draws[i].generation = generations.data<int64_t>()[i];
  }
  return draws;
}

absl::StatusOr<std::vector<Draw>> AnchorsOf(absl::string_view caller,
                                            const TensorDict& sample,
                                            absl::Span<const Draw> draws) {
  std::vector<Draw> anchors;
  if (!sample.Contains(kSequenceKey) || !sample.Contains(kAnchorKey)) {
    return anchors;
  }
  RILL_ASSIGN_OR_RETURN(const Tensor sequences,
                        NumbersOf(caller, sample, kSequenceKey));
  RILL_ASSIGN_OR_RETURN(const Tensor slots,
                        NumbersOf(caller, sample, kAnchorKey));
  const auto rows = static_cast<int64_t>(draws.size());
  if (sequences.num_elements() != rows || slots.num_elements() != rows) {
    return anchors;
  }
  bool is_found = true;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t* const sequence = sequences.data<int64_t>() + i;
    if (i == 0 || sequence[0] != sequence[-1]) {
      if (!is_found) break;
      is_found = false;
    }
    if (!is_found && draws[i].slot == slots.data<int64_t>()[i]) {
      anchors.push_back(draws[i]);
      is_found = true;
    }
  }
  // A transform has taken rows away: nobody knows whose the priorities are.
  if (!is_found) anchors.clear();
  return anchors;
}

}  // namespace rill::replay_internal
