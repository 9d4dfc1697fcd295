// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_GENERATIONS_H_
#define RILL_SLOTS_GENERATIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"
#include "rill/slots/slot_array.h"
#include "rill/slots/slot_places.h"
#include "rill/slots/write_observer.h"

namespace rill {

// Counts how often each slot was written: 0 for a slot's first row, 1 for the
// next, and so on. A value that comes back for a row (a priority, a patch) is
// so recognised as stale when the row is another one by then. A slot that holds
// no row (never written, retired, cleared) has a negative generation and no
// draw is current there, also while the write that retired it is in flight. The
// count goes on over retiring, clearing and being attached again, so a draw
// that was stale once stays so. A write counts once however often it names the
// slot, and counts where it retires the row; a patch (WriteEvent::is_patch)
// does not count.
//
// Thread-safety: thread-compatible; an owner that shares it locks around it.
// Cost: O(slots written) an event, and far less for whole steps of many lanes;
//   O(1) a look-up, 8 bytes a slot where neighbours (slot_places.h) were not
//   written equally often (slot_array.h).
class Generations : public WriteObserver {
 public:
  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

  // Negative where the slot holds no row; -1 where it never did. `slot` must be
  // in [0, number of slots).
  int64_t Get(Slot slot) const { return next_.Get(places_.Of(slot)) - 1; }
  // generations[i] = Get(slots[i]).
  void GetMany(absl::Span<const Slot> slots, int64_t* generations) const {
    if (places_.go_by_step()) {
      for (size_t i = 0; i < slots.size(); ++i) generations[i] = Get(slots[i]);
      return;
    }
    next_.GetMany(slots, generations);
    for (size_t i = 0; i < slots.size(); ++i) --generations[i];
  }
  // take(i, Get(slot_of(i))) for i in [0, n), in no order, for slots that lie
  // anywhere. `take` must not change what slot_of gives.
  template <typename SlotOf, typename Take>
  void GetAnywhere(size_t n, SlotOf slot_of, Take take) const {
    next_.GetAnywhere(
        n, [&](size_t i) { return places_.Of(slot_of(i)); },
        [&](size_t i, int64_t next) { take(i, next - 1); });
  }
  int64_t num_slots() const { return next_.num_slots(); }
  // The row that was drawn is still there. False for slots out of range.
  bool IsCurrent(const Draw& draw) const {
    return draw.generation >= 0 && draw.slot >= 0 && draw.slot < num_slots() &&
           Get(draw.slot) == draw.generation;
  }

  // For checkpoints. Get of these slots is `generation` from now on; after the
  // attaching.
  void Restore(SlotRange slots, int64_t generation);
  // The first slot >= `slot` that may have been written, num_slots() where none
  // was.
  Slot NextWritten(Slot slot) const;

 private:
  template <typename Next>
  void Advance(absl::Span<const SlotRange> ranges,
               absl::Span<const LaneBlock> blocks, Next next);

  SlotPlaces places_;
  SlotArray<int64_t> next_;  // Get + 1, by place.
  // Positions from here on were never written, in any lane.
  int64_t end_ = 0;
};

}  // namespace rill

#endif  // RILL_SLOTS_GENERATIONS_H_
