// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/live_slots.h"

#include <algorithm>

// A lane's live rows are a window of steps, so two numbers a lane suffice, and
// no slot is listed. The sums of the windows' sizes before each lane are in
// starts_: a binary search there finds the lane of the n-th live slot.

namespace rill {

void LiveSlots::OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) {
  lanes_ = lanes;
  windows_.assign(cursors.size(), Window());
  starts_.assign(cursors.size() + 1, 0);
  // The live rows come with the OnWrite that follows. A lane's first range
  // there tells where they begin (`skipped`).
  size_ = 0;
}

void LiveSlots::OnRetire(const WriteEvent& event) {
  // Rows that are written over in place stay live.
  if (!event.is_append) return;
  for (const SlotRange& range : event.retired) {
    Window& window = windows_[lanes_.LaneOf(range.first)];
    SetLive(std::max<int64_t>(window.live - range.count, 0), &window);
  }
  UpdateStarts();
}

void LiveSlots::OnWrite(const WriteEvent& event) {
  if (!event.is_append) return;
  const int64_t capacity = lanes_.capacity;
  for (const SlotRange& range : event.written) {
    Window& window = windows_[lanes_.LaneOf(range.first)];
    // A write longer than the ring names only the rows that it left behind.
    const int64_t skipped =
        lanes_.PositionOf(range.first) - window.written % capacity;
    window.written +=
        (skipped < 0 ? skipped + capacity : skipped) + range.count;
    SetLive(std::min(window.live + range.count, capacity), &window);
  }
  UpdateStarts();
}

void LiveSlots::OnClear() {
  std::fill(windows_.begin(), windows_.end(), Window());
  UpdateStarts();
}

int64_t LiveSlots::LaneOfNth(int64_t n) const {
  // The last lane that starts at or before n: one without rows shares its start
  // with the next and is passed over.
  return std::upper_bound(starts_.begin(), starts_.end(), n) - starts_.begin() -
         1;
}

void LiveSlots::NthOfMany(absl::Span<Slot> slots) const {
  if (windows_.size() != 1) {
    for (Slot& slot : slots) slot = Nth(slot);
    return;
  }
  // Copies, which no slot that is stored can change.
  const int64_t first = windows_[0].first;
  const int64_t capacity = lanes_.capacity;
  for (Slot& slot : slots) {
    const int64_t position = first + slot;
    slot = position < capacity ? position : position - capacity;
  }
}

void LiveSlots::SetLive(int64_t live, Window* window) const {
  window->live = live;
  window->first = (window->written - live) % lanes_.capacity;
}

bool LiveSlots::Contains(Slot slot) const {
  if (slot < 0 || windows_.empty() || slot >= lanes_.num_slots()) return false;
  const Window& window = windows_[lanes_.LaneOf(slot)];
  // How many steps before the newest one this slot was written.
  const int64_t age =
      (window.written - 1 - lanes_.PositionOf(slot)) % lanes_.capacity;
  return (age < 0 ? age + lanes_.capacity : age) < window.live;
}

void LiveSlots::UpdateStarts() {
  size_ = 0;
  for (size_t lane = 0; lane < windows_.size(); ++lane) {
    size_ += windows_[lane].live;
    starts_[lane + 1] = size_;
  }
}

}  // namespace rill
