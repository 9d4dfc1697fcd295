// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ON_DISK_ROW_LINE_H_
#define RILL_STORAGE_ON_DISK_ROW_LINE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "rill/slots/slot.h"
#include "rill/storage/ring/lane_rings.h"

namespace rill::storage_internal {

// Which steps of a lane are live: those of [first_live, written) that the ring
// still holds, so the last min(written - first_live, C). `first_live` is 0
// except after a writer died while it overwrote the oldest ones.
struct LaneMark {
  int64_t written = 0;
  int64_t first_live = 0;
  friend bool operator==(const LaneMark&, const LaneMark&) = default;
};

// A line of rows: what was appended one behind the other, so that a step of a
// lane is one row and no other. It has a name that no other has. Going back to
// a position ends a line there and begins another behind it.
// docs/formats/storage_directory.md.
struct RowLine {
  std::array<uint8_t, 16> name = {};
  // One a lane. In a position these rows were live. In a history `written`
  // steps are this line's, and those behind them are gone.
  std::vector<LaneMark> marks;
  friend bool operator==(const RowLine&, const RowLine&) = default;
};

// A position, and the rows of it that are left.
struct FoundPosition {
  LaneRings rings;  // As they were.
  int64_t missing = 0;
  std::vector<SlotRange> kept = {};  // Ascending.
  // The storage stands there: nothing came later.
  bool is_here = false;
  // That of the storage once it is back there, up to the new line.
  std::vector<RowLine> history = {};
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ON_DISK_ROW_LINE_H_
