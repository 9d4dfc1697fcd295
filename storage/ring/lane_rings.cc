// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/ring/lane_rings.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::storage_internal {
namespace {

// As LaneBlocks reads them: neighbours that name the same positions are one.
void AddBlock(const LaneBlock& block, std::vector<LaneBlock>* blocks) {
  if (block.count == 0) return;
  if (!blocks->empty()) {
    LaneBlock& last = blocks->back();
    if (last.end() == block.lane && last.position == block.position &&
        last.count == block.count) {
      last.num_lanes += block.num_lanes;
      return;
    }
  }
  blocks->push_back(block);
}

}  // namespace

bool AllInRange(absl::Span<const Slot> slots, int64_t limit) {
  // slot | (last - slot) has its sign bit set where slot < 0 or slot > last.
  // Without a branch the loop runs at the speed of its loads; one test at the
  // end decides.
  // A sign bit tells, of the slot or of its distance. Four at once.
  const uint64_t last = static_cast<uint64_t>(limit) - 1;
  uint64_t signs[4] = {limit > 0 || slots.empty() ? 0 : ~uint64_t{0}, 0, 0, 0};
  const size_t whole = slots.size() / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) {
    for (size_t k = 0; k < 4; ++k) {
      const uint64_t slot = static_cast<uint64_t>(slots[i + k]);
      signs[k] |= slot | (last - slot);
    }
  }
  for (size_t i = whole; i < slots.size(); ++i) {
    const uint64_t slot = static_cast<uint64_t>(slots[i]);
    signs[0] |= slot | (last - slot);
  }
  return static_cast<int64_t>(signs[0] | signs[1] | signs[2] | signs[3]) >= 0;
}

int64_t LaneRings::live(int64_t lane) const {
  const int64_t gone = first_live_.empty() ? 0 : first_live_[lane];
  return std::min(cursors_[lane].written - gone, lanes_.capacity);
}

bool LaneRings::IsLiveSlow(Slot slot) const {
  if (slot >= lanes_.num_slots()) return false;
  const int64_t lane = lanes_.LaneOf(slot);
  // How many steps of the lane are older, counted around the ring.
  const int64_t age = lanes_.PositionOf(slot) - OldestPosition(lane);
  return (age < 0 ? age + lanes_.capacity : age) < live(lane);
}

absl::Status LaneRings::NotLive(absl::string_view caller, Slot slot) const {
  const absl::string_view head = ": slot: got ";
  if (size_ == 0) {
    return OutOfRange(caller, head, slot,
                      ", want a live one; no row is stored");
  }
  const bool is_slot = slot >= 0 && slot < lanes_.num_slots();
  if (!is_slot || (lanes_.count == 1 && first_live_.empty())) {
    return OutOfRange(caller, head, slot, ", want a live one in [0, ",
                      lanes_.count == 1 ? size_ : lanes_.num_slots(), ")");
  }
  const int64_t lane = lanes_.LaneOf(slot);
  const Slot first = lanes_.SlotOf(lane, OldestPosition(lane));
  const Slot wrap = lanes_.SlotOf(lane + 1, 0);
  const Slot end = first + live(lane);
  return OutOfRange(caller, head, slot, " of lane ", lane,
                    ", want a live one in [", first, ", ", std::min(end, wrap),
                    ")",
                    end > wrap ? absl::StrCat(" or [", lanes_.SlotOf(lane, 0),
                                              ", ", end - lanes_.capacity, ")")
                               : "");
}

absl::Status LaneRings::CheckLive(absl::string_view caller,
                                  absl::Span<const Slot> slots) const {
  // Nearly always all are below the first lane that is not full.
  if (AllInRange(slots, live_below_)) return absl::OkStatus();
  for (const Slot slot : slots) {
    if (!IsLive(slot)) return NotLive(caller, slot);
  }
  return absl::OkStatus();
}

absl::Status LaneRings::CheckLive(absl::string_view caller,
                                  SlotRange range) const {
  if (range.count < 0 || range.first > INT64_MAX - range.count) {
    return OutOfRange(caller, ": range: got [", range.first, ", +", range.count,
                      "), want 0 <= count");
  }
  if (range.count == 0) return absl::OkStatus();
  const Slot last = range.first + range.count - 1;
  if (!IsLive(range.first)) return NotLive(caller, range.first);
  if (lanes_.LaneOf(range.first) != lanes_.LaneOf(last)) {
    return OutOfRange(caller, ": range: got [", range.first, ", ", last + 1,
                      "), want slots of one lane of ", lanes_.capacity);
  }
  if (!IsLive(last)) return NotLive(caller, last);
  // Both ends of a window that wraps may be live around a gap, which begins at
  // the cursor.
  const int64_t lane = lanes_.LaneOf(range.first);
  const Slot next =
      lanes_.SlotOf(lane, cursors_[lane].written % lanes_.capacity);
  if (range.first < next && next < last && !IsLive(next)) {
    return NotLive(caller, next);
  }
  return absl::OkStatus();
}

void LaneRings::AddRings(int64_t lane, int64_t end, int64_t first,
                         int64_t count, std::vector<SlotRange>* ranges) const {
  size_t used = ranges->size();
  PutRings(lane, end, first, count, &used, ranges);
}

void LaneRings::PutRings(int64_t lane, int64_t end, int64_t first,
                         int64_t count, size_t* used,
                         std::vector<SlotRange>* ranges) const {
  if (count == 0) return;
  const int64_t before_wrap = std::min(count, lanes_.capacity - first);
  const size_t parts = count > before_wrap ? 2 : 1;
  const size_t old = *used;
  *used += parts * static_cast<size_t>(end - lane);
  if (ranges->size() < *used) ranges->resize(*used);
  SlotRange* next = ranges->data() + old;
  for (Slot begin = lanes_.SlotOf(lane, 0); lane < end;
       ++lane, begin += lanes_.capacity) {
    *next++ = {begin + first, before_wrap};
    if (parts == 2) *next++ = {begin, count - before_wrap};
  }
}

absl::Status LaneRings::CheckAppend(
    absl::string_view caller, const LaneSteps& append,
    absl::Span<const LaneSteps> in_flight) const {
  if (in_flight.empty() && append.steps <= kMaxWritten - most_written_) {
    return absl::OkStatus();
  }
  for (int64_t lane = append.first; lane < append.end(); ++lane) {
    const int64_t written =
        cursors_[lane].written + StepsInFlight(in_flight, lane);
    if (append.steps <= kMaxWritten - written) continue;
    return FailedPrecondition(caller, ": cursor of lane ", lane, ": got ",
                              append.steps, " steps after ", written,
                              ", want at most ", kMaxWritten,
                              " in all; Clear first");
  }
  return absl::OkStatus();
}

int64_t LaneRings::EndOfSame(int64_t lane, int64_t end) const {
  // Without a branch a lane.
  constexpr int64_t kAtOnce = 16;
  const Cursor* const cursors = cursors_.data();
  const int64_t written = cursors[lane].written;
  for (++lane; lane + kAtOnce <= end; lane += kAtOnce) {
    int64_t any = 0;
    for (int64_t k = 0; k < kAtOnce; ++k) {
      any |= cursors[lane + k].written ^ written;
    }
    if (any != 0) break;
  }
  while (lane < end && cursors[lane].written == written) ++lane;
  return lane;
}

void LaneRings::PlanAppend(const LaneSteps& append,
                           absl::Span<const LaneSteps> in_flight,
                           AppendPlan* plan) const {
  const int64_t capacity = lanes_.capacity;
  plan->kept = std::min(append.steps, capacity);
  plan->dropped = append.steps - plan->kept;
  // Ranges of the plan before are written over: to clear them would mean to
  // make as many anew.
  size_t num_retired = 0;
  size_t num_written = 0;
  // Lanes that are in step are planned together.
  const bool may_join = in_flight.empty() && first_live_.empty();
  plan->retired_blocks.clear();
  plan->written_blocks.clear();
  for (int64_t lane = append.first, end; lane < append.end(); lane = end) {
    end = may_join ? EndOfSame(lane, append.end()) : lane + 1;
    // Where the cursor will be once the appends in flight are published. A ring
    // has no other state, so they need no further care.
    const int64_t written =
        cursors_[lane].written + StepsInFlight(in_flight, lane);
    const int64_t gone = first_live_.empty() ? 0 : first_live_[lane];
    const int64_t live = std::min(written - gone, capacity);
    const int64_t retired = std::max<int64_t>(live + plan->kept - capacity, 0);
    const int64_t first_retired = (written - live) % capacity;
    PutRings(lane, end, first_retired, retired, &num_retired, &plan->retired);
    // Dropped steps take no slot, but they move the position of those that
    // stay.
    const int64_t first_written = (written + plan->dropped) % capacity;
    PutRings(lane, end, first_written, plan->kept, &num_written,
             &plan->written);
    if (!may_join) continue;
    AddBlock({lane, end - lane, first_retired, retired}, &plan->retired_blocks);
    AddBlock({lane, end - lane, first_written, plan->kept},
             &plan->written_blocks);
  }
  plan->retired.resize(num_retired);
  plan->written.resize(num_written);
}

void LaneRings::Append(const LaneSteps& append) {
  const int64_t capacity = lanes_.capacity;
  for (int64_t lane = append.first, end; lane < append.end(); lane = end) {
    end = first_live_.empty() ? EndOfSame(lane, append.end()) : lane + 1;
    const int64_t before = cursors_[lane].written;
    const int64_t after = before + append.steps;
    std::fill(cursors_.begin() + lane, cursors_.begin() + end, Cursor{after});
    most_written_ = std::max(most_written_, after);
    const int64_t gone = first_live_.empty() ? 0 : first_live_[lane];
    size_ += (end - lane) * (std::min(after - gone, capacity) -
                             std::min(before - gone, capacity));
  }
  AdvanceLiveBelow();
}

// Lanes never shrink here, so each is passed once.
void LaneRings::AdvanceLiveBelow() {
  int64_t lane = live_below_ / lanes_.capacity;
  while (lane < lanes_.count && live(lane) == lanes_.capacity) ++lane;
  live_below_ = lane * lanes_.capacity;
  // The first lane that is not full counts where its live rows begin at its
  // first slot.
  if (lane < lanes_.count && OldestPosition(lane) == 0) {
    live_below_ += live(lane);
  }
}

void LaneRings::Restore(absl::Span<const Cursor> cursors,
                        absl::Span<const int64_t> first_live) {
  cursors_.assign(cursors.begin(), cursors.end());
  first_live_.assign(first_live.begin(), first_live.end());
  if (std::all_of(first_live_.begin(), first_live_.end(),
                  [](int64_t first) { return first == 0; })) {
    first_live_.clear();
  }
  Count();
}

void LaneRings::Count() {
  size_ = 0;
  most_written_ = 0;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    size_ += live(lane);
    most_written_ = std::max(most_written_, cursors_[lane].written);
  }
  live_below_ = 0;
  AdvanceLiveBelow();
}

void LaneRings::LiveRanges(std::vector<SlotRange>* ranges) const {
  ranges->clear();
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    AddRings(lane, lane + 1, OldestPosition(lane), live(lane), ranges);
  }
}

void ExpandRanges(absl::Span<const SlotRange> ranges,
                  std::vector<Slot>* slots) {
  int64_t count = 0;
  int64_t others = 0;  // Not 0: ranges of other than one slot.
  for (const SlotRange& range : ranges) {
    count += range.count;
    others |= range.count - 1;
  }
  slots->resize(count);
  Slot* next = slots->data();
  // A step of many lanes.
  if (others == 0) {
    for (const SlotRange& range : ranges) *next++ = range.first;
    return;
  }
  for (const SlotRange& range : ranges) {
    std::iota(next, next + range.count, range.first);
    next += range.count;
  }
}

void JoinSlots(const Lanes& lanes, absl::Span<const Slot> slots,
               std::vector<SlotRange>* ranges) {
  ranges->clear();
  for (const Slot slot : slots) {
    if (!ranges->empty() &&
        slot == ranges->back().first + ranges->back().count &&
        lanes.PositionOf(slot) != 0) {
      ++ranges->back().count;
    } else {
      ranges->push_back({slot, 1});
    }
  }
}

}  // namespace rill::storage_internal
