// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_RING_LANE_RINGS_H_
#define RILL_STORAGE_RING_LANE_RINGS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {

// An append: `steps` more of lanes [first, first + count).
struct LaneSteps {
  int64_t first = 0;
  int64_t count = 0;
  int64_t steps = 0;

  int64_t end() const { return first + count; }
  bool HasLane(int64_t lane) const {
    return lane >= first && lane - first < count;
  }
  friend bool operator==(const LaneSteps&, const LaneSteps&) = default;
};

// The steps that appends in flight add to a lane.
inline int64_t StepsInFlight(absl::Span<const LaneSteps> in_flight,
                             int64_t lane) {
  int64_t steps = 0;
  for (const LaneSteps& append : in_flight) {
    if (append.HasLane(lane)) steps += append.steps;
  }
  return steps;
}

// The effect of an append.
struct AppendPlan {
  int64_t dropped = 0;  // Oldest steps of each lane that never get a slot.
  int64_t kept = 0;     // Steps of each lane that do.
  // Lane after lane, oldest first: rows that go, and slots that are written.
  std::vector<SlotRange> retired;
  std::vector<SlotRange> written;
  // The same as blocks. None where lanes were planned one by one.
  std::vector<LaneBlock> retired_blocks;
  std::vector<LaneBlock> written_blocks;
};

// All slots are in [0, limit). No branch a slot.
bool AllInRange(absl::Span<const Slot> slots, int64_t limit);

// Which slots are live and where the next step of each lane goes. Numbers only;
// every storage that is a ring keeps one.
//
// A lane's steps go to positions written % C. Appending more than C steps is
// the same as appending them one after the other: the cursor counts all.
//
// Thread-safety: thread-compatible.
class LaneRings {
 public:
  explicit LaneRings(const Lanes& lanes)
      : lanes_(lanes), cursors_(lanes.count) {}

  const Lanes& lanes() const { return lanes_; }
  const std::vector<Cursor>& cursors() const { return cursors_; }
  // Live rows, over all lanes / of one lane.
  int64_t size() const { return size_; }
  int64_t live(int64_t lane) const;
  // Every slot in [0, live_below()) is live. If every lane before the last
  // non-empty one is full, no other slot is.
  int64_t live_below() const { return live_below_; }

  // Cost: one comparison while the lanes before are full, else a division.
  bool IsLive(Slot slot) const {
    return slot >= 0 && (slot < live_below_ || IsLiveSlow(slot));
  }
  // OUT_OF_RANGE names the first slot that is not live, and the live ones.
  absl::Status CheckLive(absl::string_view caller,
                         absl::Span<const Slot> slots) const;
  // The same for a range, which must stay in one lane.
  absl::Status CheckLive(absl::string_view caller, SlotRange range) const;

  // FAILED_PRECONDITION where a lane would have taken more than kMaxWritten
  // steps. Arguments as PlanAppend's.
  absl::Status CheckAppend(absl::string_view caller, const LaneSteps& append,
                           absl::Span<const LaneSteps> in_flight = {}) const;
  // Plans `append` as it will be after those in flight, which were planned and
  // come before it. Its lanes are within lanes(), steps >= 0. Reuses `plan`.
  void PlanAppend(const LaneSteps& append,
                  absl::Span<const LaneSteps> in_flight,
                  AppendPlan* plan) const;
  void Append(const LaneSteps& append);
  // One cursor a lane, of at most kMaxWritten. With `first_live`, which has one
  // a lane too and none above the cursor, steps before it are not live: a
  // writer died while it overwrote them.
  void Restore(absl::Span<const Cursor> cursors,
               absl::Span<const int64_t> first_live = {});
  // Empty where all are 0.
  const std::vector<int64_t>& first_live() const { return first_live_; }

  // All live slots, lane after lane, oldest first. Reuses `ranges`.
  void LiveRanges(std::vector<SlotRange>* ranges) const;
  // Appends positions [first, first + count) of a ring, at most a whole one,
  // for each of lanes [lane, end).
  void AddRings(int64_t lane, int64_t end, int64_t first, int64_t count,
                std::vector<SlotRange>* ranges) const;

 private:
  // AddRings, behind the first `used` ranges and over others there may be.
  void PutRings(int64_t lane, int64_t end, int64_t first, int64_t count,
                size_t* used, std::vector<SlotRange>* ranges) const;
  bool IsLiveSlow(Slot slot) const;
  absl::Status NotLive(absl::string_view caller, Slot slot) const;
  void Count();
  void AdvanceLiveBelow();
  // The first lane behind `lane`, at most `end`, whose cursor is another one.
  int64_t EndOfSame(int64_t lane, int64_t end) const;
  // The place of a lane's oldest live step.
  int64_t OldestPosition(int64_t lane) const {
    return (cursors_[lane].written - live(lane)) % lanes_.capacity;
  }

  Lanes lanes_;
  std::vector<Cursor> cursors_;
  std::vector<int64_t> first_live_;
  int64_t size_ = 0;
  int64_t most_written_ = 0;  // No cursor is above.
  Slot live_below_ = 0;       // All slots below are live.
};

// The slots of `ranges`, one after the other. Reuses `slots`.
void ExpandRanges(absl::Span<const SlotRange> ranges, std::vector<Slot>* slots);
// The opposite: joins neighbours; a run never leaves its lane.
void JoinSlots(const Lanes& lanes, absl::Span<const Slot> slots,
               std::vector<SlotRange>* ranges);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_RING_LANE_RINGS_H_
