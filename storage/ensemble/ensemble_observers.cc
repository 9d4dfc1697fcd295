// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/ensemble/ensemble_observers.h"

#include <algorithm>

namespace rill::storage_internal {
namespace {

void MoveUp(Slot first, absl::Span<const SlotRange> ranges,
            std::vector<SlotRange>* moved) {
  for (const SlotRange& range : ranges) {
    moved->push_back({range.first + first, range.count});
  }
}

template <typename T>
void Append(absl::Span<const T> values, std::vector<T>* all) {
  all->insert(all->end(), values.begin(), values.end());
}

}  // namespace

bool LiveRows::is_consistent() const {
  const auto fits = [this](const auto& values) {
    return values.empty() || static_cast<int64_t>(values.size()) == num_rows_;
  };
  return fits(ends_) && fits(trajectory_ids_) && fits(priorities_) &&
         fits(policy_versions_);
}

WriteEvent LiveRows::Event() const {
  return {.is_append = true,
          .retired = {},
          .written = ranges_,
          .ends = ends_,
          .trajectory_ids = trajectory_ids_,
          .priorities = priorities_,
          .policy_versions = policy_versions_,
          .begins_cut = {}};
}

void LiveRows::OnAttach(const Lanes&, absl::Span<const Cursor> cursors) {
  Append(cursors, &cursors_);
}

void LiveRows::OnRetire(const WriteEvent&) {}

void LiveRows::OnWrite(const WriteEvent& event) {
  MoveUp(first_slot_, event.written, &ranges_);
  for (const SlotRange& range : event.written) num_rows_ += range.count;
  Append(event.ends, &ends_);
  Append(event.trajectory_ids, &trajectory_ids_);
  Append(event.priorities, &priorities_);
  Append(event.policy_versions, &policy_versions_);
}

void LiveRows::OnClear() {}

bool EnsembleObservers::Has(WriteObserver* observer) const {
  absl::MutexLock lock(&mutex_);
  return std::find(observers_.begin(), observers_.end(), observer) !=
         observers_.end();
}

void EnsembleObservers::Add(WriteObserver* observer, const LiveRows& rows) {
  absl::MutexLock lock(&mutex_);
  observers_.push_back(observer);
  observer->OnAttach(lanes_, rows.cursors());
  if (rows.num_rows() > 0) observer->OnWrite(rows.Event());
}

void EnsembleObservers::Remove(WriteObserver* observer) {
  absl::MutexLock lock(&mutex_);
  observers_.erase(std::remove(observers_.begin(), observers_.end(), observer),
                   observers_.end());
}

ValuesRead EnsembleObservers::values_read() const {
  absl::MutexLock lock(&mutex_);
  ValuesRead read = ValuesRead::None();
  for (const WriteObserver* observer : observers_) {
    read = read | observer->values_read();
  }
  return read;
}

void EnsembleObservers::Clear() {
  absl::MutexLock lock(&mutex_);
  is_muted_ = false;
  is_broken_ = false;
  for (WriteObserver* observer : observers_) observer->OnClear();
}

void EnsembleObservers::Tell(const LiveRows& rows) {
  absl::MutexLock lock(&mutex_);
  is_muted_ = false;
  is_broken_ = false;
  for (WriteObserver* observer : observers_) {
    observer->OnClear();
    observer->OnAttach(lanes_, rows.cursors());
    if (rows.num_rows() > 0) observer->OnWrite(rows.Event());
  }
}

void EnsembleObservers::Mute() {
  absl::MutexLock lock(&mutex_);
  is_muted_ = true;
}

void EnsembleObservers::Break() {
  absl::MutexLock lock(&mutex_);
  is_muted_ = false;
  is_broken_ = true;
}

void EnsembleObservers::MemberAttached() {
  absl::MutexLock lock(&mutex_);
  // In Clear and Load members attach their observers anew as a part of the
  // call.
  if (!is_muted_) is_broken_ = true;
}

const WriteEvent& EnsembleObservers::Moved(Slot first,
                                           const WriteEvent& event) {
  // Events are passed on one at a time, so their ranges share this memory.
  retired_.clear();
  written_.clear();
  MoveUp(first, event.retired, &retired_);
  MoveUp(first, event.written, &written_);
  moved_ = event;
  moved_.retired = retired_;
  moved_.written = written_;
  // They count the member's lanes.
  moved_.retired_blocks = {};
  moved_.written_blocks = {};
  return moved_;
}

void EnsembleObservers::MemberRetires(Slot first, const WriteEvent& event) {
  absl::MutexLock lock(&mutex_);
  if (is_muted_ || is_broken_) return;
  const WriteEvent& moved = Moved(first, event);
  for (WriteObserver* observer : observers_) observer->OnRetire(moved);
}

void EnsembleObservers::MemberWrote(Slot first, const WriteEvent& event) {
  absl::MutexLock lock(&mutex_);
  if (is_muted_ || is_broken_) return;
  const WriteEvent& moved = Moved(first, event);
  for (WriteObserver* observer : observers_) observer->OnWrite(moved);
}

}  // namespace rill::storage_internal
