// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_GATHER_LISTS_H_
#define RILL_STORAGE_ROWS_GATHER_LISTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/row_column.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/storage/read_graph.h"
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

  // Where a list of rows is on the device once `uploads` has sent it. Null
  // where it is empty.
  absl::StatusOr<const int64_t*> AddRows(absl::Span<const int64_t> rows);
  // Row rows[i] of the table goes to place i of each column, for `count` rows
  // that AddRows gave.
  void Add(absl::Span<const RowColumn> columns, const int64_t* rows,
           int64_t count);
  // All rows so far, list after list.
  absl::Span<const int64_t> rows() const { return rows_; }
  const Stream& stream() const { return uploads_.stream(); }

  // Launch enqueues `graph`, of the rows in `table`, behind the uploads.
  // FAILED_PRECONDITION where it was captured of others. Before any list.
  absl::Status SetGraph(ReadGraph* graph, std::shared_ptr<const Buffer> table);
  // Enqueues what `uploads` has to send, the gathers, and what `launch` does.
  absl::Status Launch(absl::FunctionRef<absl::Status()> launch);

 private:
  bool is_captured() const {
    return graph_ != nullptr && graph_->graph.has_value();
  }

  const int64_t table_rows_;
  StreamUploads& uploads_;
  std::vector<int64_t> rows_;
  std::vector<GatherListsKernel> kernels_;
  ReadGraph* graph_ = nullptr;
  std::shared_ptr<const Buffer> table_;  // Of graph_.
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_GATHER_LISTS_H_
