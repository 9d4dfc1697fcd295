// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_ROW_HISTORY_H_
#define RILL_STORAGE_DIRECTORY_ROW_HISTORY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/storage/directory/commit_record.h"
#include "rill/storage/lane_rings.h"

namespace rill::storage_internal {

// A line of rows: what was appended one behind the other, so that a step of a
// lane is one row and no other. It has a name that no other has. Going back to
// a position ends a line there and begins another behind it.
// docs/formats/storage_directory.md.
struct RowLine {
  std::array<uint8_t, 16> name = {};
  // One a lane. Of a position: what was live. Of a history: `written` steps are
  // this line's, what lies behind them is no more.
  std::vector<LaneMark> marks;
  friend bool operator==(const RowLine&, const RowLine&) = default;
};

// What a record says of rings, and rings of what a record says.
std::vector<LaneMark> MarksOf(const LaneRings& rings);
LaneRings RingsOf(const Lanes& lanes, absl::Span<const LaneMark> marks);

// A new line without an end.
absl::StatusOr<RowLine> NewLine(const Lanes& lanes);

// A history (oldest first) or a position (one line) as bytes, and back,
// believing nothing: DATA_LOSS where they are damaged, FAILED_PRECONDITION,
// naming both sides, where they are of other lanes. `what` starts the message.
std::string EncodeLines(const Lanes& lanes, absl::Span<const RowLine> lines);
absl::StatusOr<std::vector<RowLine>> DecodeLines(absl::string_view what,
                                                 absl::string_view bytes,
                                                 const Lanes& lanes);

// What is left of a position.
struct FoundPosition {
  LaneRings rings;  // As they were.
  int64_t missing = 0;
  std::vector<SlotRange> kept = {};  // Ascending.
  // The storage stands there: nothing came later.
  bool is_here = false;
  // That of the storage once it is back there, up to the new line.
  std::vector<RowLine> history = {};
};

// `now` are the storage's rings. FAILED_PRECONDITION, which starts with `what`,
// where the history does not know the position's line.
absl::StatusOr<FoundPosition> FindPosition(absl::string_view what,
                                           const RowLine& position,
                                           absl::Span<const RowLine> history,
                                           const LaneRings& now);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_ROW_HISTORY_H_
