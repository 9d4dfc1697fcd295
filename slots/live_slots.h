// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_LIVE_SLOTS_H_
#define RILL_SLOTS_LIVE_SLOTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// The slots that may be drawn right now: per lane the window of steps
// [written - live, written), kept up to date by the storage's events. Numbers
// the live slots 0 .. size() - 1 (lane after lane, oldest first), so that a
// uniform integer becomes a uniform slot. Writing over live rows in place
// changes nothing here: they stay live, and the storage's readers wait for it.
//
// Neighbouring lanes that are written together are one group. A storage whose
// lanes are all in step has one.
//
// Thread-safety: thread-compatible; an owner that shares it locks around it.
// Cost: an event O(ranges + groups), Nth O(log groups) and a division, memory
//   48 bytes a group.
class LiveSlots : public WriteObserver {
 public:
  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

  int64_t size() const { return size_; }
  const Lanes& lanes() const { return lanes_; }
  // The n-th live slot, n in [0, size()).
  Slot Nth(int64_t n) const {
    const Group& group = groups_.size() == 1 ? groups_[0] : GroupOfNth(n);
    return NthOf(group, n - group.start);
  }
  // slots[i] = Nth(slots[i]).
  void NthOfMany(absl::Span<Slot> slots) const;
  bool Contains(Slot slot) const;

 private:
  // Lanes [lane, end), which have the same positions live.
  struct Group {
    int64_t lane = 0;
    int64_t end = 0;
    int64_t next = 0;   // The position behind the newest row.
    int64_t live = 0;   // As many before may be drawn.
    int64_t first = 0;  // The position of the first of those.
    int64_t start = 0;  // Live slots in the groups before.
  };
  Slot NthOf(const Group& group, int64_t n) const;
  const Group& GroupOfNth(int64_t n) const;
  size_t GroupOf(int64_t lane) const;
  // Calls change(block, group) for the lanes of each block.
  template <typename Change>
  void ChangeLanes(LaneBlocks blocks, Change change);
  void SetLive(int64_t live, Group* group) const;
  void UpdateStarts();

  Lanes lanes_;
  std::vector<Group> groups_;     // By lane, all lanes.
  std::vector<Group> regrouped_;  // Memory of events.
  int64_t size_ = 0;
};

}  // namespace rill

#endif  // RILL_SLOTS_LIVE_SLOTS_H_
