// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ON_DISK_ROW_POSITIONS_H_
#define RILL_STORAGE_ON_DISK_ROW_POSITIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/slots/slot.h"
#include "rill/storage/on_disk/row_line.h"
#include "rill/storage/ring/lane_rings.h"

namespace rill::storage_internal {

// Moments of the rows that a later process can go back to. Positions are made
// and found after MappedRows::MapRows.
// Thread-safety: thread-compatible.
class RowPositions {
 public:
  virtual ~RowPositions() = default;

  // Everything that was committed outlives a loss of power: rows first, then
  // the record that tells of them.
  virtual absl::Status Sync() const = 0;
  // That of `now`.
  virtual absl::StatusOr<std::string> SavePosition(
      const LaneRings& now) const = 0;
  virtual absl::StatusOr<FoundPosition> FindPosition(
      absl::string_view position, const LaneRings& now) const = 0;
  // RowCommits::BeginDiscard to a position of which nothing is missing and that
  // is not `now`. With an error, or killed on the way, the record is as it was.
  virtual absl::Status GoBack(const LaneRings& now, FoundPosition found) = 0;
  // Positions so far are of rows that are about to go.
  virtual absl::Status ForgetPositions(const Lanes& lanes) const = 0;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ON_DISK_ROW_POSITIONS_H_
