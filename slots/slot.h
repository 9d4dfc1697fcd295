// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_SLOT_H_
#define RILL_SLOTS_SLOT_H_

#include <cstdint>

namespace rill {

// A slot is the logical number of a stored row: with L lanes of C slots each,
// slot = lane * C + position, whatever the order in memory. The steps of a lane
// follow one another; after position C - 1 comes position 0 of the same lane.
using Slot = int64_t;

// Slots [first, first + count) of one lane; never wraps.
struct SlotRange {
  Slot first = 0;
  int64_t count = 0;
  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

// How a storage's slots are divided.
struct Lanes {
  int64_t count = 1;     // L, >= 1.
  int64_t capacity = 0;  // C, slots of one lane, >= 1 once known.

  int64_t num_slots() const { return count * capacity; }
  int64_t LaneOf(Slot slot) const { return slot / capacity; }
  int64_t PositionOf(Slot slot) const { return slot % capacity; }
  Slot SlotOf(int64_t lane, int64_t position) const {
    return lane * capacity + position;
  }
  friend bool operator==(const Lanes&, const Lanes&) = default;
};

// How many steps a lane ever takes: room to add to without overflow.
inline constexpr int64_t kMaxWritten = int64_t{1} << 62;

// The cursor of a lane: `written` steps were ever appended to it, at most
// kMaxWritten. The next one goes to position written % C. The live steps are
// the last min(written, C), less those that a write in flight has retired.
struct Cursor {
  int64_t written = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// A sampler's pick: a slot, the generation that the slot had then, and the
// importance weight, 1 unless the sampler is prioritized. By the generation a
// priority that comes back for an overwritten row is recognised as stale.
struct Draw {
  Slot slot = 0;
  int64_t generation = 0;
  float weight = 1.0f;
  friend bool operator==(const Draw&, const Draw&) = default;
};

}  // namespace rill

#endif  // RILL_SLOTS_SLOT_H_
