// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_SLOT_PLACES_H_
#define RILL_SLOTS_SLOT_PLACES_H_

#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"

namespace rill {

// value / by, of value >= 0 and by > 0. 32 bits take a third of the time on
// many processors.
inline int64_t DivideSlots(int64_t value, int64_t by) {
  constexpr int64_t kMax32 = std::numeric_limits<uint32_t>::max();
  return value <= kMax32 && by <= kMax32
             ? static_cast<uint32_t>(value) / static_cast<uint32_t>(by)
             : value / by;
}

// Where an array keeps the value of each slot, so that what a write names lies
// together. Few lanes are written many steps at a time: a slot's place is its
// number. A write of kManyLanes and more mostly holds one step: places go step
// after step, and within a step lane after lane.
//
// Thread-safety: immutable.
// Cost: Of a division where there are many lanes.
class SlotPlaces {
 public:
  static constexpr int64_t kManyLanes = 1024;

  // Neighbouring places that a write names. The k-th is that of slot + k *
  // slot_step, and of the write's row number row + k * row_step.
  struct Run {
    int64_t place = 0;
    int64_t count = 0;
    Slot slot = 0;
    int64_t slot_step = 1;
    int64_t row = 0;
    int64_t row_step = 1;
  };

  explicit SlotPlaces(const Lanes& lanes = {})
      : lanes_(lanes), go_by_step_(lanes.count >= kManyLanes) {}

  const Lanes& lanes() const { return lanes_; }
  bool go_by_step() const { return go_by_step_; }

  int64_t Of(Slot slot) const {
    if (!go_by_step_) return slot;
    const int64_t lane = DivideSlots(slot, lanes_.capacity);
    return (slot - lane * lanes_.capacity) * lanes_.count + lane;
  }
  Slot SlotAt(int64_t place) const {
    if (!go_by_step_) return place;
    const int64_t position = DivideSlots(place, lanes_.count);
    return lanes_.SlotOf(place - position * lanes_.count, position);
  }

  // Calls fn(run) for the places of ranges, each in one lane: all of a range or
  // block before those of the next. `known` as LaneBlocks has it.
  template <typename Fn>
  void ForEachRun(absl::Span<const SlotRange> ranges,
                  absl::Span<const LaneBlock> known, Fn fn) const {
    Run run;
    if (!go_by_step_) {
      for (const SlotRange& range : ranges) {
        run.place = run.slot = range.first;
        run.count = range.count;
        fn(run);
        run.row += range.count;
      }
      return;
    }
    run.slot_step = lanes_.capacity;
    LaneBlocks blocks(lanes_, ranges, known);
    int64_t row = 0;
    for (LaneBlock block; blocks.Next(&block);) {
      run.count = block.num_lanes;
      run.row_step = block.count;
      int64_t position = block.position;
      for (int64_t step = 0; step < block.count; ++step) {
        run.place = position * lanes_.count + block.lane;
        run.slot = lanes_.SlotOf(block.lane, position);
        run.row = row + step;
        fn(run);
        if (++position == lanes_.capacity) position = 0;
      }
      row += block.num_lanes * block.count;
    }
  }

 private:
  Lanes lanes_;
  bool go_by_step_;
};

}  // namespace rill

#endif  // RILL_SLOTS_SLOT_PLACES_H_
