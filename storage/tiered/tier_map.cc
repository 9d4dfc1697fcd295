// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/tiered/tier_map.h"

#include <algorithm>
#include <cstddef>

namespace rill::storage_internal {

TierMap::TierMap(const Lanes& below, int64_t fast_capacity)
    : below_(below),
      fast_{below.count, fast_capacity},
      lanes_(static_cast<size_t>(below.count)) {}

void TierMap::SplitRead(absl::Span<const Slot> slots, Split* split) const {
  split->fast_slots.assign(slots.size(), 0);
  split->hits.clear();
  split->missing.clear();
  split->missing_slots.clear();
  absl::ReaderMutexLock lock(&mutex_);
  split->version_ = version_;
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot slot = slots[i];
    const auto place = static_cast<int64_t>(i);
    if (slot >= 0 && slot < below_.num_slots() && !is_patching_) {
      const int64_t number =
          below_.count == 1 ? 0 : static_cast<int64_t>(below_.LaneOf(slot));
      const Lane& lane = lanes_[number];
      // How many steps of the lane are newer.
      // Counted around the ring. A slot that was never written has at least as
      // many newer ones as there are rows, so it is missing.
      int64_t newer = lane.next - 1 - (slot - number * below_.capacity);
      if (newer < 0) newer += below_.capacity;
      if (newer < lane.rows) {
        int64_t position = lane.fast_next - 1 - newer;
        if (position < 0) position += fast_.capacity;
        split->fast_slots[i] = fast_.SlotOf(number, position);
        split->hits.push_back({place, slot, number, lane.written - 1 - newer});
        continue;
      }
    }
    split->missing.push_back(place);
    split->missing_slots.push_back(slot);
  }
  if (split->hits.empty()) return;
  // The whole batch is read from the fast tier in one call. Places of missing
  // rows get some live row there, and their own afterwards.
  const Slot some = split->fast_slots[split->hits[0].place];
  for (const int64_t place : split->missing) split->fast_slots[place] = some;
}

void TierMap::FindLost(Split* split, bool all) const {
  split->missing.clear();
  split->missing_slots.clear();
  absl::ReaderMutexLock lock(&mutex_);
  // Before the fast tier overwrites a row BeginAppend has taken it out of
  // `rows`. A patch or a restart changes the version instead.
  all = all || version_ != split->version_;
  for (const Split::Hit& hit : split->hits) {
    const Lane& lane = lanes_[hit.lane];
    if (!all && hit.step >= lane.written - lane.rows) continue;
    split->missing.push_back(hit.place);
    split->missing_slots.push_back(hit.slot);
  }
}

void TierMap::BeginAppend(int64_t first, int64_t count, int64_t steps) {
  absl::MutexLock lock(&mutex_);
  rows_before_.clear();
  // Rows that the fast tier is about to overwrite are given up now. Readers
  // that copy them meanwhile find them lost.
  const int64_t stay = std::max(fast_.capacity - steps, int64_t{0});
  for (int64_t i = first; i < first + count; ++i) {
    rows_before_.push_back(lanes_[i].rows);
    lanes_[i].rows = std::min(lanes_[i].rows, stay);
  }
}

void TierMap::EndAppend(int64_t first, int64_t count, int64_t steps) {
  absl::MutexLock lock(&mutex_);
  for (int64_t i = first; i < first + count; ++i) {
    Lane& lane = lanes_[i];
    lane.written += steps;
    lane.rows += std::min(steps, fast_.capacity);
    lane.next = (lane.next + steps % below_.capacity) % below_.capacity;
    lane.fast_next = (lane.fast_next + steps % fast_.capacity) % fast_.capacity;
  }
}

void TierMap::CancelAppend(int64_t first) {
  absl::MutexLock lock(&mutex_);
  for (const int64_t rows : rows_before_) lanes_[first++].rows = rows;
}

void TierMap::BeginPatch() {
  absl::MutexLock lock(&mutex_);
  is_patching_ = true;
  ++version_;
}

void TierMap::EndPatch() {
  absl::MutexLock lock(&mutex_);
  is_patching_ = false;
}

void TierMap::Forget() {
  absl::MutexLock lock(&mutex_);
  ++version_;
  for (Lane& lane : lanes_) lane.rows = 0;
}

void TierMap::Restart(absl::Span<const Cursor> cursors) {
  absl::MutexLock lock(&mutex_);
  ++version_;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const int64_t written = cursors[i].written;
    lanes_[i] = {.written = written, .next = written % below_.capacity};
  }
}

}  // namespace rill::storage_internal
