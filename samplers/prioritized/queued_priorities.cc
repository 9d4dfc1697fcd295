// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized/queued_priorities.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "rill/base/status_macros.h"

namespace rill::samplers_internal {
namespace {

using Change = DevicePriorities::Change;

constexpr uint32_t kFields =
    Change::kPriority | Change::kState | Change::kGeneration;

// 0 where there is none.
int64_t BitsOf(std::optional<float> largest) {
  return largest ? int64_t{std::bit_cast<uint32_t>(*largest)} + 1 : 0;
}

}  // namespace

void QueuedPriorities::Drop() {
  changes_.clear();
  batches_.clear();
  next_batch_ = next_change_ = last_call_ = 0;
}

void QueuedPriorities::Reset(int64_t size) {
  absl::MutexLock lock(&mutex_);
  Drop();
  lost_ = absl::OkStatus();
  if (size != size_) priorities_.reset();
  size_ = size;
  is_clear_ = false;
}

void QueuedPriorities::TurnAllOff() {
  absl::MutexLock lock(&mutex_);
  if (!lost_.ok()) return;
  // Nothing is on yet.
  if (!is_clear_ && batches_.empty()) return;
  batches_.push_back(
      {.end = changes_.size(), .sets = 0, .turns_all_off = true});
  last_call_ = changes_.size();
}

bool QueuedPriorities::Merge(absl::Span<const Change> changes) {
  // Of those that are launched nothing may change.
  if (last_call_ < next_change_) return false;
  const absl::Span<Change> last = absl::MakeSpan(changes_).subspan(last_call_);
  const bool is_same = std::equal(
      last.begin(), last.end(), changes.begin(), changes.end(),
      [](const Change& a, const Change& b) { return a.slot == b.slot; });
  if (!is_same || last.empty()) return false;
  if ((changes[0].sets & kFields) == kFields) {
    changes_.resize(last_call_);
    Push(changes);
    batches_.back().sets = kFields;
    return true;
  }
  if ((changes[0].sets & kFields) != Change::kState) return false;
  for (size_t i = 0; i < last.size(); ++i) {
    constexpr uint32_t kBoth = Change::kState | Change::kOn;
    last[i].sets = (last[i].sets & ~kBoth) | changes[i].sets;
  }
  batches_.back().sets |= Change::kState;
  return true;
}

void QueuedPriorities::Push(absl::Span<const Change> changes) {
  last_call_ = changes_.size();
  changes_.insert(changes_.end(), changes.begin(), changes.end());
  for (size_t i = last_call_; i < changes_.size(); ++i) {
    if ((changes_[i].sets & Change::kLargest) == 0) continue;
    changes_[i].bits = static_cast<uint32_t>(batches_.back().largest);
  }
  batches_.back().end = changes_.size();
}

void QueuedPriorities::Append(absl::Span<const Change> changes,
                              std::optional<float> largest) {
  if (!Merge(changes)) {
    const uint32_t sets = changes.empty() ? 0 : changes[0].sets & kFields;
    const bool joins = next_batch_ < batches_.size() &&
                       !batches_.back().replaces_largest &&
                       (changes.empty() ||
                        (sets & batches_.back().sets) == batches_.back().sets);
    if (!joins) batches_.push_back({.end = 0, .sets = sets});
    Push(changes);
    batches_.back().sets |= sets;
  }
  Batch& batch = batches_.back();
  batch.largest = std::max(batch.largest, BitsOf(largest));
}

void QueuedPriorities::Add(absl::Span<const Change> changes,
                           std::optional<float> largest) {
  absl::MutexLock lock(&mutex_);
  if (lost_.ok()) Append(changes, largest);
}

absl::Status QueuedPriorities::Load(absl::Span<const Change> changes,
                                    std::optional<float> largest) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(lost_);
  if (size_ == 0) return absl::OkStatus();
  changes_.insert(changes_.end(), changes.begin(), changes.end());
  last_call_ = changes_.size();
  batches_.push_back({.end = changes_.size(),
                      .sets = kFields,
                      .largest = BitsOf(largest),
                      .replaces_largest = true});
  return Flush();
}

void QueuedPriorities::FlushIfFull() {
  absl::MutexLock lock(&mutex_);
  if (changes_.size() < kFull) return;
  if (absl::Status status = Flush(); !status.ok()) {
    Drop();
    lost_ = std::move(status);
  }
}

absl::Status QueuedPriorities::Flush() {
  RILL_RETURN_IF_ERROR(lost_);
  if (priorities_ == nullptr) {
    RILL_ASSIGN_OR_RETURN(priorities_,
                          DevicePriorities::Create({.size = size_,
                                                    .alpha = alpha_,
                                                    .epsilon = epsilon_,
                                                    .device = device_}));
    is_clear_ = is_weighed_ = true;
  }
  if (!is_clear_) {
    RILL_RETURN_IF_ERROR(priorities_->Clear());
    is_clear_ = true;
  }
  for (; next_batch_ < batches_.size(); ++next_batch_) {
    Batch& batch = batches_[next_batch_];
    if (batch.turns_all_off) {
      RILL_RETURN_IF_ERROR(priorities_->TurnAllOff());
      batch.turns_all_off = false;
    }
    do {
      const size_t count = std::min(batch.end - next_change_, kFull);
      DevicePriorities::Largest largest;
      // Changes take the largest of before all of them.
      if (next_change_ + count == batch.end) {
        largest = {.bits = batch.largest, .replaces = batch.replaces_largest};
      }
      if (count == 0 && largest.bits == 0 && !largest.replaces) break;
      RILL_RETURN_IF_ERROR(priorities_->Apply(
          absl::MakeConstSpan(changes_).subspan(next_change_, count), largest));
      next_change_ += count;
    } while (next_change_ < batch.end);
  }
  Drop();
  return absl::OkStatus();
}

absl::Status QueuedPriorities::Update(const Rows& rows,
                                      std::shared_ptr<const void> owner,
                                      const Stream& stream) {
  absl::MutexLock lock(&mutex_);
  // No row was ever there.
  if (size_ == 0) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(Flush());
  return priorities_->Update({.slots = rows.slots,
                              .generations = rows.generations,
                              .priorities = rows.priorities,
                              .count = rows.count},
                             std::move(owner), stream);
}

absl::StatusOr<DevicePriorities::Drawn> QueuedPriorities::Draw(
    const DevicePriorities::Request& request, double alpha) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(Flush());
  if (alpha != alpha_ || !is_weighed_) {
    alpha_ = alpha;
    is_weighed_ = false;
    RILL_RETURN_IF_ERROR(priorities_->SetAlpha(alpha));
    is_weighed_ = true;
  }
  return priorities_->Draw(request);
}

absl::StatusOr<DevicePriorities::Contents> QueuedPriorities::Read() {
  absl::MutexLock lock(&mutex_);
  if (size_ == 0) return DevicePriorities::Contents();
  RILL_RETURN_IF_ERROR(Flush());
  return priorities_->Read();
}

absl::StatusOr<DevicePriorities::Bad> QueuedPriorities::ReadBad() {
  absl::MutexLock lock(&mutex_);
  if (size_ == 0) return DevicePriorities::Bad();
  RILL_RETURN_IF_ERROR(Flush());
  RILL_RETURN_IF_ERROR(priorities_->Read().status());
  return priorities_->bad();
}

}  // namespace rill::samplers_internal
