// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ON_DISK_MAPPED_ROWS_H_
#define RILL_STORAGE_ON_DISK_MAPPED_ROWS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/sparse_file.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
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

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ON_DISK_MAPPED_ROWS_H_
