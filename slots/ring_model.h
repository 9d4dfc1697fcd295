// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_RING_MODEL_H_
#define RILL_SLOTS_RING_MODEL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::slots_internal {

// A storage without bytes, the slow and obvious way: each lane is a list of its
// live slots, oldest first, and each slot counts its writes. It sends the
// events that a storage sends, and tests compare observers with it.
// Thread-safety: thread-compatible.
class RingModel {
 public:
  // `observer` outlives the model and is attached at once.
  RingModel(const Lanes& lanes, WriteObserver* observer);

  // Appends counts[lane] rows to each lane in one event (counts may be over the
  // capacity: the rows that would be overwritten at once are not named).
  // Between retiring and writing, `between` runs.
  void Append(const std::vector<int64_t>& counts,
              const std::function<void()>& between);
  // An append in two halves, several of which may be open. Publish writes the
  // one that was begun first. A lane has room for all that are open.
  void Begin(const std::vector<int64_t>& counts);
  void Publish();
  bool is_open() const { return !open_.empty(); }
  // How many rows an append may add to a lane beside those that are open.
  int64_t Room(int64_t lane) const;
  // Writes over live rows in place; `slots` are live and may be named twice.
  void WriteInPlace(const std::vector<Slot>& slots,
                    const std::function<void()>& between,
                    bool is_patch = false);
  void Clear();
  // A second observer that comes when rows are there already.
  void Attach(WriteObserver* late) const;

  const Lanes& lanes() const { return lanes_; }
  // Live slots, lane after lane, oldest first.
  std::vector<Slot> Live() const;
  // How often a slot was written.
  int64_t writes(Slot slot) const { return writes_[slot]; }

 private:
  struct OpenAppend {
    std::vector<int64_t> counts;
    std::vector<SlotRange> retired, written;
  };
  std::vector<SlotRange> Ranges(int64_t lane, int64_t first_step,
                                int64_t count) const;

  Lanes lanes_;
  WriteObserver* observer_;
  std::vector<Cursor> cursors_;  // Published.
  std::vector<int64_t> begun_;   // Rows of open appends, one a lane.
  std::deque<OpenAppend> open_;
  std::vector<std::deque<Slot>> live_;
  std::vector<int64_t> writes_;
};

}  // namespace rill::slots_internal

#endif  // RILL_SLOTS_RING_MODEL_H_
