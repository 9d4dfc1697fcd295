// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/used_slots.h"

#include <algorithm>
#include <cstddef>

#include "rill/slots/lane_blocks.h"

namespace rill::samplers_internal {

void UsedSlots::OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) {
  lanes_ = lanes;
  used_.assign(cursors.size(), 0);
  for (size_t lane = 0; lane < cursors.size(); ++lane) {
    used_[lane] = std::min(cursors[lane].written, lanes.capacity);
  }
  UpdateEnds();
}

bool UsedSlots::OnWrite(const WriteEvent& event) {
  if (!event.is_append) return false;
  // None is left to be used for the first time.
  if (size() == lanes_.num_slots()) return false;
  bool grows = false;
  LaneBlocks blocks(lanes_, event.written, event.written_blocks);
  for (LaneBlock block; blocks.Next(&block);) {
    // Positions are written in order from 0, so the used ones have no gap, and
    // a ring that wraps around is used whole.
    const int64_t end = std::min(block.position + block.count, lanes_.capacity);
    for (int64_t lane = block.lane; lane < block.end(); ++lane) {
      grows |= end > used_[lane];
      used_[lane] = std::max(used_[lane], end);
    }
  }
  if (grows) UpdateEnds();
  return grows;
}

void UsedSlots::OnClear() {
  std::fill(used_.begin(), used_.end(), 0);
  UpdateEnds();
}

Slot UsedSlots::At(int64_t n) const {
  const int64_t lane =
      std::upper_bound(ends_.begin(), ends_.end(), n) - ends_.begin();
  return lanes_.SlotOf(lane, n - (lane == 0 ? 0 : ends_[lane - 1]));
}

bool UsedSlots::Contains(const SlotRange& slots) const {
  const Slot end = slots.first + slots.count;
  for (Slot slot = slots.first; slot < end;) {
    const auto lane = static_cast<size_t>(lanes_.LaneOf(slot));
    const Slot lane_end = lanes_.SlotOf(static_cast<int64_t>(lane) + 1, 0);
    // A lane's used slots are its first ones, so the last position decides.
    const int64_t last = lanes_.PositionOf(std::min(end, lane_end) - 1);
    if (lane >= used_.size() || last >= used_[lane]) return false;
    slot = lane_end;
  }
  return true;
}

Slot UsedSlots::Next(Slot slot) const {
  const int64_t num_slots = lanes_.num_slots();
  while (slot < num_slots) {
    const auto lane = static_cast<size_t>(lanes_.LaneOf(slot));
    if (lane >= used_.size()) return num_slots;
    if (lanes_.PositionOf(slot) < used_[lane]) return slot;
    slot = lanes_.SlotOf(static_cast<int64_t>(lane) + 1, 0);
  }
  return num_slots;
}

void UsedSlots::UpdateEnds() {
  // Sums over the lanes, for At to search.
  ends_.resize(used_.size());
  int64_t end = 0;
  for (size_t lane = 0; lane < used_.size(); ++lane) {
    ends_[lane] = end += used_[lane];
  }
}

}  // namespace rill::samplers_internal
