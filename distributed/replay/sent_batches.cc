// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/sent_batches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rill/device/device.h"
#include "rill/distributed/replay/batch_memory.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

bool HasOnlyTensors(const TensorDict& batch) {
  bool has_only_tensors = true;
  batch.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    has_only_tensors =
        has_only_tensors &&
        (kind == EntryKind::kTensor ||
         (kind == EntryKind::kDict && HasOnlyTensors(*batch.FindDict(key))));
  });
  return has_only_tensors && !batch.empty();
}

bool AreSameBytes(const TensorDict& memory, const TensorDict& batch) {
  if (batch.batch_shape() != memory.batch_shape() ||
      batch.num_leaves() != memory.num_leaves()) {
    return false;
  }
  bool are_same = HasOnlyTensors(batch);
  batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    const Tensor* const own = memory.Find(key);
    are_same = are_same && own != nullptr && leaf.is_contiguous() &&
               leaf.raw_data() == own->raw_data();
  });
  return are_same;
}

namespace {

bool IsPageable(const TensorDict& batch) {
  bool is_pageable = true;
  batch.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    is_pageable = is_pageable && leaf.device().is_cpu() &&
                  leaf.memory_kind() == MemoryKind::kPageable;
  });
  return is_pageable;
}

}  // namespace

bool SentBatches::IsFree(const Sent& sent) {
  return std::all_of(
      sent.buffers.begin(), sent.buffers.end(),
      [](const auto& one) { return one.first.use_count() == one.second; });
}

SentBatches::Sent SentBatches::HoldersOf(const TensorDict& batch) {
  Sent sent{.batch = batch, .buffers = {}};
  sent.batch.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    sent.bytes += leaf.size_bytes();
    const auto found = std::find_if(
        sent.buffers.begin(), sent.buffers.end(),
        [&](const auto& one) { return one.first == leaf.buffer(); });
    if (found == sent.buffers.end()) {
      sent.buffers.emplace_back(leaf.buffer(), 2);
    } else {
      ++found->second;
    }
  });
  return sent;
}

TensorDict SentBatches::Take(const Shape& batch_shape) {
  absl::MutexLock lock(&mu_);
  // The newest is the one that caches still have.
  const auto found =
      std::find_if(sent_.rbegin(), sent_.rend(), [&](const Sent& sent) {
        return sent.batch.batch_shape() == batch_shape && IsFree(sent);
      });
  if (found != sent_.rend()) {
    // A copy, which counts holders up: so what others did before they let go
    // has happened here too.
    TensorDict batch = found->batch;
    sent_.erase(std::next(found).base());
    return batch;
  }
  if (!layout_.has_value() || batch_shape != newest_ || sent_.size() == kMost) {
    return {};
  }
  auto made = MakeBatchMemory(*layout_, batch_shape);
  if (!made.ok()) return {};  // The caller's attempt says why.
  TensorDict batch = std::move(made->back());
  made->pop_back();
  for (TensorDict& one : *made) {
    if (sent_.size() == kMost) break;
    sent_.push_back(HoldersOf(std::exchange(one, {})));
  }
  return batch;
}

void SentBatches::Keep(const TensorDict& batch) {
  if (!HasOnlyTensors(batch)) return;
  Sent sent = HoldersOf(batch);
  absl::MutexLock lock(&mu_);
  newest_ = batch.batch_shape();
  if (!layout_.has_value() && sent.bytes >= kMinBatchMemoryBytes &&
      IsPageable(batch)) {
    layout_ = TensorDictSpec::Of(batch);
    return;
  }
  size_t free = 0;
  int64_t free_bytes = 0;
  for (size_t i = sent_.size(); i-- > 0;) {
    if (!IsFree(sent_[i])) continue;
    free_bytes += sent_[i].bytes;
    if (++free > kMostFree && (sent_[i].bytes < kMinBatchMemoryBytes ||
                               free_bytes > kMostFreeBytes)) {
      sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (sent_.size() == kMost) sent_.pop_front();
  sent_.push_back(std::move(sent));
}

}  // namespace rill
