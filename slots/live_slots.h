// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_LIVE_SLOTS_H_
#define RILL_SLOTS_LIVE_SLOTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// The slots that may be drawn right now: per lane the window of steps
// [written - live, written), kept up to date by the storage's events. Numbers
// the live slots 0 .. size() - 1 (lane after lane, oldest first), so that a
// uniform integer becomes a uniform slot. Writing over live rows in place
// changes nothing here: they stay live, and the storage's readers wait for it.
//
// Thread-safety: thread-compatible; an owner that shares it locks around it.
// Cost: an event O(ranges + lanes), Nth O(log lanes), memory 24 bytes a lane.
class LiveSlots : public WriteObserver {
 public:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

  int64_t size() const { return size_; }
  const Lanes& lanes() const { return lanes_; }
  // The n-th live slot, n in [0, size()).
  Slot Nth(int64_t n) const {
    if (windows_.size() == 1) return NthOf(0, n);
    const int64_t lane = LaneOfNth(n);
    return NthOf(lane, n - starts_[lane]);
  }
  // slots[i] = Nth(slots[i]).
  void NthOfMany(absl::Span<Slot> slots) const;
  bool Contains(Slot slot) const;

 private:
  struct Window {
    int64_t written = 0;  // Steps appended, up to a multiple of the capacity.
    int64_t live = 0;     // The last `live` of them may be drawn.
    int64_t first = 0;    // Position of the first of those.
  };
  Slot NthOf(int64_t lane, int64_t n) const {
    const int64_t position = windows_[lane].first + n;
    return lanes_.SlotOf(lane, position < lanes_.capacity
                                   ? position
                                   : position - lanes_.capacity);
  }
  int64_t LaneOfNth(int64_t n) const;
  void SetLive(int64_t live, Window* window) const;
  void UpdateStarts();

  Lanes lanes_;
  std::vector<Window> windows_;  // One a lane.
  std::vector<int64_t> starts_;  // Live slots in the lanes before; L + 1.
  int64_t size_ = 0;
};

}  // namespace rill

#endif  // RILL_SLOTS_LIVE_SLOTS_H_
