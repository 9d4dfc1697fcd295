// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ON_DISK_ROWS_ON_DISK_H_
#define RILL_STORAGE_ON_DISK_ROWS_ON_DISK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/sparse_file.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/storage/on_disk/row_line.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/rows/row_layout.h"

namespace rill::storage_internal {

// The bytes of rows, where they outlive the storage.
// Thread-safety: thread-compatible, but for what says otherwise.
class MappedRows {
 public:
  virtual ~MappedRows() = default;

  // The live rows that were found there, without what a killed writer left in
  // the middle; none where it is new.
  virtual std::optional<LaneRings> FoundRings(const Lanes& lanes) const = 0;

  // The bytes of all rows of `layout`. Where it is new it makes the files, else
  // the layout must be that of the rows there.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> MapRows(
      const RowLayout& layout, const Lanes& lanes) = 0;

  // Their addresses; after MapRows.
  virtual const std::shared_ptr<AddressRange>& row_addresses() const = 0;

  // Space for rows that are about to be written. With an error nothing has
  // changed.
  virtual absl::Status Reserve(absl::Span<const SlotRange> ranges) = 0;
  // After MapRows, what the rows' files take on the disk. Thread-safe.
  virtual int64_t DiskBytes() const = 0;
  // The free bytes of the file system. Thread-safe.
  virtual std::optional<int64_t> FreeDiskBytes() const = 0;
};

// Says which rows are whole before and after every change of their bytes, so
// that a process that is killed on the way leaves whole rows.
// Thread-safety: thread-compatible.
class RowCommits {
 public:
  virtual ~RowCommits() = default;

  // How many appends may be announced and not committed.
  virtual size_t max_appends_in_flight() const = 0;
  // DEADLINE_EXCEEDED, and nothing has changed, where readers hold rows that
  // would go.
  virtual absl::Status Announce(const LaneSteps& append) = 0;
  virtual void Commit(const LaneSteps& append) = 0;
  // Around a change of the live rows that is no append. BeginDiscard goes from
  // `now` to `kept`; an error changes nothing. EndDiscard goes to `live`, and
  // all other rows read as zeros then; nobody may be reading those. Killed on
  // the way, the next owner zeroes all that is not live. No-op where there are
  // no files yet.
  virtual absl::Status BeginDiscard(const LaneRings& now,
                                    const LaneRings& kept) = 0;
  virtual void EndDiscard(const LaneRings& live) = 0;
  virtual bool MayBeginInPlace() const = 0;
  virtual void BeginInPlace() = 0;
  virtual void EndInPlace() = 0;
};

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

// The rows and cursors of a storage, in files that outlive it. A
// storage in memory has none, and need not bring the files along: only
// StorageDirectory is one.
//
// The storage calls, around every change of bytes: Reserve and Announce (may
// fail, nothing has changed), its copies, Commit.
//
// Thread-safety: thread-compatible; the storage's locks guard it.
class RowsOnDisk : public MappedRows, public RowCommits, public RowPositions {};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ON_DISK_ROWS_ON_DISK_H_
