// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SHARING_WRITES_IN_FLIGHT_H_
#define RILL_STORAGE_SHARING_WRITES_IN_FLIGHT_H_

#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/storage/ring/lane_rings.h"

namespace rill::storage_internal {

// Which rows are being written, so that writers of different rows go side by
// side. A write that would touch a row of another one waits for that one.
// Appends to one lane end in the order in which they began.
//
// Thread-safety: thread-compatible.
// Cost: nothing while one write is in flight at a time. Else each write sorts
//   its rows once, and each pair of writes takes a pass over the rows of both.
class WritesInFlight {
 public:
  // One write. The memory that it points to stays unchanged until the write
  // ends.
  struct Write {
    LaneSteps append = {};  // steps == 0: over live rows, in place.
    // Its rows: ranges that are apart, and slots, each in any order.
    absl::Span<const SlotRange> ranges = {};
    absl::Span<const Slot> slots = {};
    // This class's own: its rows sorted and apart, once somebody asked.
    std::vector<SlotRange> joined = {};
    bool is_joined = false;
  };

  bool empty() const { return writes_.empty(); }
  // Those to lanes, in the order in which they began.
  absl::Span<const LaneSteps> appends() const { return appends_; }

  // A row of `write`, which is not in flight, is in one that is.
  bool Meets(Write* write) const;
  void Begin(Write* write);
  // An append to one of its lanes began earlier.
  bool HasEarlier(const Write& write) const;
  void End(Write* write);

 private:
  static absl::Span<const SlotRange> RowsOf(Write* write);

  std::vector<Write*> writes_;      // In the order in which they began.
  std::vector<LaneSteps> appends_;  // Of those that are appends.
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_SHARING_WRITES_IN_FLIGHT_H_
