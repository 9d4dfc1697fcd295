// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/gather_lists.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/graphs/graph.h"
#include "rill/device/kernels/kernel_launch.h"

namespace rill::storage_internal {

absl::StatusOr<const int64_t*> GatherLists::AddRows(
    absl::Span<const int64_t> rows) {
  if (rows.empty()) return nullptr;
  RILL_ASSIGN_OR_RETURN(const auto list,
                        uploads_.Mirror<int64_t>(std::ssize(rows)));
  std::copy(rows.begin(), rows.end(), list.host);
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  return list.device;
}

void GatherLists::Add(absl::Span<const RowColumn> columns, const int64_t* rows,
                      int64_t count) {
  if (count == 0 || is_captured()) return;
  for (const RowColumn& column : columns) {
    if (!kernels_.empty() && kernels_.back().Add(column, rows, count)) continue;
    kernels_.push_back({.table_rows = table_rows_});
    kernels_.back().Add(column, rows, count);
  }
}

absl::Status GatherLists::SetGraph(ReadGraph* graph,
                                   std::shared_ptr<const Buffer> table) {
  graph_ = graph;
  table_ = std::move(table);
  if (!is_captured() || graph->table == table_) return absl::OkStatus();
  return FailedPrecondition(
      "Storage::EnqueueReadsInto: graph: got one of rows that lay elsewhere, "
      "want one of the storage's own; capture it again");
}

absl::Status GatherLists::Launch(absl::FunctionRef<absl::Status()> launch) {
  RILL_RETURN_IF_ERROR(uploads_.SendValues());
  const auto enqueue = [&](const Stream& on) -> absl::Status {
    for (const GatherListsKernel& kernel : kernels_) {
      RILL_RETURN_IF_ERROR(LaunchKernel(kernel, kernel.grid(), on));
    }
    return launch();
  };
  if (graph_ == nullptr) return enqueue(stream());
  if (!is_captured()) {
    // Batches of other threads use stream() meanwhile.
    RILL_ASSIGN_OR_RETURN(const Stream aside,
                          Stream::Create(stream().device()));
    const StreamScope scope(aside);  // `launch` goes to the current stream.
    RILL_ASSIGN_OR_RETURN(
        Graph made, Graph::Capture(aside, [&] { return enqueue(aside); }));
    *graph_ = {.table = table_, .graph = std::move(made)};
  }
  return graph_->graph->Launch(stream());
}

}  // namespace rill::storage_internal
