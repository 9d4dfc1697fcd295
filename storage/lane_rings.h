// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_LANE_RINGS_H_
#define RILL_STORAGE_LANE_RINGS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {

// What appending the same number of steps to a run of lanes does.
struct AppendPlan {
  int64_t dropped = 0;  // Oldest steps of each lane that never get a slot.
  int64_t kept = 0;     // Steps of each lane that do.
  // Lane after lane, oldest first: rows that go, and slots that are written.
  std::vector<SlotRange> retired;
  std::vector<SlotRange> written;
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
  // All slots below are live; all that are live are, where all lanes before the
  // last one with rows are full.
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
  absl::Status CheckAppend(absl::string_view caller, int64_t first_lane,
                           int64_t num_lanes, int64_t steps) const;
  // `first_lane` and `num_lanes` within lanes(), `steps` >= 0. Reuses `plan`.
  void PlanAppend(int64_t first_lane, int64_t num_lanes, int64_t steps,
                  AppendPlan* plan) const;
  void Append(int64_t first_lane, int64_t num_lanes, int64_t steps);
  void Clear();
  // One cursor a lane, of at most kMaxWritten. With `first_live`, which has one
  // a lane too and none above the cursor, steps before it are not live: a
  // writer died while it overwrote them.
  void Restore(absl::Span<const Cursor> cursors,
               absl::Span<const int64_t> first_live = {});
  // Empty where all are 0.
  const std::vector<int64_t>& first_live() const { return first_live_; }

  // All live slots, lane after lane, oldest first. Reuses `ranges`.
  void LiveRanges(std::vector<SlotRange>* ranges) const;
  // Sorts live slots lane after lane and oldest first, as events want them, and
  // keeps each once.
  void SortByAge(std::vector<Slot>* slots) const;

 private:
  bool IsLiveSlow(Slot slot) const;
  absl::Status NotLive(absl::string_view caller, Slot slot) const;
  void Count();
  void AdvanceLiveBelow();
  // Where a lane's oldest live step lies.
  int64_t OldestPosition(int64_t lane) const {
    return (cursors_[lane].written - live(lane)) % lanes_.capacity;
  }
  // Appends positions [first, first + count) of a lane's ring.
  void AddRing(int64_t lane, int64_t first, int64_t count,
               std::vector<SlotRange>* ranges) const;

  Lanes lanes_;
  std::vector<Cursor> cursors_;
  std::vector<int64_t> first_live_;
  int64_t size_ = 0;
  Slot live_below_ = 0;  // All slots below are live.
};

// The slots of `ranges`, one after the other. Reuses `slots`.
void ExpandRanges(absl::Span<const SlotRange> ranges, std::vector<Slot>* slots);
// The opposite: joins neighbours; a run never leaves its lane.
void JoinSlots(const Lanes& lanes, absl::Span<const Slot> slots,
               std::vector<SlotRange>* ranges);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_LANE_RINGS_H_
