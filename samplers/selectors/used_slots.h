// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_USED_SLOTS_H_
#define RILL_SAMPLERS_SELECTORS_USED_SLOTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::samplers_internal {

// The slots that have held a row since the storage was empty: the first ones of
// each lane. A capacity may be far above what a storage will ever hold. So an
// epoch goes over these, and a state with values for other slots is refused
// before they take memory.
//
// Thread-safety: thread-compatible.
// Cost: an event O(ranges), and O(lanes) where the slots grow; 16 bytes a lane.
class UsedSlots {
 public:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors);
  // True if there are more now.
  bool OnWrite(const WriteEvent& event);
  void OnClear();

  const Lanes& lanes() const { return lanes_; }
  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  // The n-th, n in [0, size()), lane after lane. O(log lanes).
  Slot At(int64_t n) const;
  // True if all of them are used, for any range of slots of the lanes. O(lanes
  // of them).
  bool Contains(const SlotRange& slots) const;
  // The first one that is >= `slot`, which is >= 0; the number of slots where
  // none is. O(lanes that are passed over).
  Slot Next(Slot slot) const;

 private:
  void UpdateEnds();

  Lanes lanes_;
  std::vector<int64_t> used_;  // Of each lane.
  std::vector<int64_t> ends_;  // Their sums over the lanes up to it.
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SELECTORS_USED_SLOTS_H_
