// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_GATHER_LISTS_H_
#define RILL_STORAGE_ROWS_GATHER_LISTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/row_column.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/storage/rows/gather_lists_kernel.h"

namespace rill::storage_internal {

// Gathers of several lists of rows of one table on a device, in one launch for
// up to 32 columns of all lists together.
// Thread-safety: thread-compatible.
class GatherLists {
 public:
  // For a table of so many rows. The lists go through `uploads`.
  GatherLists(int64_t table_rows, StreamUploads* uploads)
      : table_rows_(table_rows), uploads_(*uploads) {}

  // Row rows[i] of the table goes to place i of each column.
  absl::Status Add(absl::Span<const RowColumn> columns,
                   absl::Span<const int64_t> rows);
  // Such a list alone, for a kernel of the caller's: where it is on the device
  // behind Launch; null where it is empty.
  absl::StatusOr<const int64_t*> AddRows(absl::Span<const int64_t> rows);
  // All rows so far, list after list.
  absl::Span<const int64_t> rows() const { return rows_; }
  const Stream& stream() const { return uploads_.stream(); }

  // Enqueues what `uploads` has to send, and the gathers.
  absl::Status Launch();

 private:
  const int64_t table_rows_;
  StreamUploads& uploads_;
  std::vector<int64_t> rows_;
  std::vector<GatherListsKernel> kernels_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_GATHER_LISTS_H_
