// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_ROW_HISTORY_H_
#define RILL_STORAGE_DIRECTORY_ROW_HISTORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/storage/on_disk/row_line.h"  // IWYU pragma: export
#include "rill/storage/ring/lane_rings.h"

namespace rill::storage_internal {

// The marks of rings, and the rings of marks.
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

// `now` are the storage's rings. FAILED_PRECONDITION, which starts with `what`,
// where the history does not know the position's line.
absl::StatusOr<FoundPosition> FindPosition(absl::string_view what,
                                           const RowLine& position,
                                           absl::Span<const RowLine> history,
                                           const LaneRings& now);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_ROW_HISTORY_H_
