// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/live_slots.h"

#include <algorithm>
#include <utility>

#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot_places.h"

// A lane's live rows are a window of steps, so two numbers suffice, and no slot
// is listed. Lanes with the same numbers share them. A write of just the lanes
// of a group changes these in place; any other splits and joins groups in one
// pass over all of them.

namespace rill {

void LiveSlots::OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) {
  lanes_ = lanes;
  groups_.clear();
  if (!cursors.empty()) groups_.push_back({.end = lanes.count});
  // The live rows come with the OnWrite that follows. A lane's first range
  // there tells where they begin.
  size_ = 0;
}

template <typename Change>
void LiveSlots::ChangeLanes(LaneBlocks blocks, Change change) {
  LaneBlock block;
  bool is_left = blocks.Next(&block);
  for (; is_left; is_left = blocks.Next(&block)) {
    Group& group = groups_[GroupOf(block.lane)];
    if (group.lane != block.lane || group.end != block.end()) break;
    change(block, &group);
  }
  if (is_left) {
    size_t old = 0;    // The group that is looked at,
    int64_t lane = 0;  // and its first lane that is not in regrouped_.
    const auto take = [&](int64_t end, const auto& change_one) {
      while (lane < end) {
        Group group = groups_[old];
        group.lane = lane;
        lane = group.end = std::min(group.end, end);
        if (lane == groups_[old].end) ++old;
        change_one(&group);
        if (!regrouped_.empty() && regrouped_.back().next == group.next &&
            regrouped_.back().live == group.live) {
          regrouped_.back().end = group.end;
        } else {
          regrouped_.push_back(group);
        }
      }
    };
    const auto keep = [](Group* /*group*/) {};
    const auto finish = [&] {
      take(lanes_.count, keep);
      groups_.swap(regrouped_);
      regrouped_.clear();
      old = 0;
      lane = 0;
    };
    do {
      if (block.lane < lane) finish();
      take(block.lane, keep);
      take(block.end(), [&](Group* group) { change(block, group); });
    } while (blocks.Next(&block));
    finish();
  }
  UpdateStarts();
}

void LiveSlots::OnRetire(const WriteEvent& event) {
  // Rows that are written over in place stay live.
  if (!event.is_append) return;
  ChangeLanes(LaneBlocks(lanes_, event.retired, event.retired_blocks),
              [this](const LaneBlock& block, Group* group) {
                SetLive(std::max<int64_t>(group->live - block.count, 0), group);
              });
}

void LiveSlots::OnWrite(const WriteEvent& event) {
  if (!event.is_append) return;
  const auto add = [this](const LaneBlock& block, Group* group) {
    // A write longer than the ring names only the rows that it left behind.
    group->next = block.position + block.count;
    if (group->next >= lanes_.capacity) group->next -= lanes_.capacity;
    SetLive(std::min(group->live + block.count, lanes_.capacity), group);
  };
  ChangeLanes(LaneBlocks(lanes_, event.written, event.written_blocks), add);
}

void LiveSlots::OnClear() {
  if (groups_.empty()) return;
  groups_.assign(1, {.end = lanes_.count});
  size_ = 0;
}

size_t LiveSlots::GroupOf(int64_t lane) const {
  if (groups_.size() == 1) return 0;
  const auto after = std::upper_bound(
      groups_.begin(), groups_.end(), lane,
      [](int64_t of, const Group& group) { return of < group.lane; });
  return static_cast<size_t>(after - groups_.begin()) - 1;
}

const LiveSlots::Group& LiveSlots::GroupOfNth(int64_t n) const {
  // The last group that starts at or before n: one without rows shares its
  // start with the next and is passed over.
  const auto after = std::upper_bound(
      groups_.begin(), groups_.end(), n,
      [](int64_t of, const Group& group) { return of < group.start; });
  return *(after - 1);
}

Slot LiveSlots::NthOf(const Group& group, int64_t n) const {
  int64_t lane = group.lane;
  if (group.end - lane > 1) {
    const int64_t before = DivideSlots(n, group.live);
    lane += before;
    n -= before * group.live;
  }
  const int64_t position = group.first + n;
  return lanes_.SlotOf(
      lane, position < lanes_.capacity ? position : position - lanes_.capacity);
}

void LiveSlots::NthOfMany(absl::Span<Slot> slots) const {
  if (groups_.size() != 1) {
    for (Slot& slot : slots) slot = Nth(slot);
    return;
  }
  // Copies, which no slot that is stored can change.
  const Group group = groups_[0];
  const int64_t capacity = lanes_.capacity;
  if (group.end > 1) {
    for (Slot& slot : slots) {
      const int64_t lane = DivideSlots(slot, group.live);
      const int64_t position = group.first + slot - lane * group.live;
      slot = lane * capacity +
             (position < capacity ? position : position - capacity);
    }
    return;
  }
  for (Slot& slot : slots) {
    const int64_t position = group.first + slot;
    slot = position < capacity ? position : position - capacity;
  }
}

void LiveSlots::SetLive(int64_t live, Group* group) const {
  group->live = live;
  group->first = group->next - live;
  if (group->first < 0) group->first += lanes_.capacity;
}

bool LiveSlots::Contains(Slot slot) const {
  if (slot < 0 || groups_.empty() || slot >= lanes_.num_slots()) return false;
  const int64_t lane = lanes_.LaneOf(slot);
  const Group& group = groups_[GroupOf(lane)];
  // How many steps before the newest one this slot was written.
  const int64_t age = group.next - 1 - (slot - lanes_.SlotOf(lane, 0));
  return (age < 0 ? age + lanes_.capacity : age) < group.live;
}

void LiveSlots::UpdateStarts() {
  size_ = 0;
  for (Group& group : groups_) {
    group.start = size_;
    size_ += group.live * (group.end - group.lane);
  }
}

}  // namespace rill
