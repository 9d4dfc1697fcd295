// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_ANCHORS_H_
#define RILL_SAMPLERS_ANCHORS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"

namespace rill {

// The rows that a unit lets a selector pick: those that can be the first of a
// slice, the live ones where an item is one row. Numbers them 0 .. size() - 1;
// a number is a row's until the next write.
//
// Thread-safety: thread-compatible; the sampler's mutex guards it.
class Anchors {
 public:
  virtual ~Anchors() = default;

  virtual int64_t size() const = 0;
  // `n` in [0, size()).
  virtual Slot At(int64_t n) const = 0;
  virtual bool Contains(Slot slot) const = 0;
  // One of them by the unit's own rule (each with the same probability where it
  // has none), a pure function of `bits`. size() > 0.
  virtual Slot Pick(const Rng::Block& bits) const = 0;
  // slots[i] = Pick(bits[i]), for as many of each; where a pick is several
  // steps through memory, those of different picks at a time.
  virtual void PickMany(absl::Span<const Rng::Block> bits,
                        absl::Span<Slot> slots) const {
    for (size_t i = 0; i < bits.size(); ++i) slots[i] = Pick(bits[i]);
  }
};

// Is notified which rows become anchors and which cease to be. A row that is
// written over in place ceases and becomes one again when it is written, not
// when it retires; it may be named twice. Anchors need not come with the write
// of their own row. Those of slices come with the write that makes them
// anchors.
class AnchorListener {
 public:
  virtual ~AnchorListener() = default;
  virtual void OnAnchorsAdded(absl::Span<const SlotRange> slots) = 0;
  virtual void OnAnchorsRemoved(absl::Span<const SlotRange> slots) = 0;
  // There are none any more.
  virtual void OnAnchorsCleared() = 0;
};

// Calls fn(slot) for each slot of the ranges, in their order.
template <typename Fn>
void ForEachSlot(absl::Span<const SlotRange> ranges, Fn fn) {
  for (const SlotRange& range : ranges) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      fn(slot);
    }
  }
}

}  // namespace rill

#endif  // RILL_SAMPLERS_ANCHORS_H_
