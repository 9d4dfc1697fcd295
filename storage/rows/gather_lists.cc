// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/gather_lists.h"

#include <algorithm>
#include <iterator>

#include "rill/base/status_macros.h"
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

absl::Status GatherLists::Add(absl::Span<const RowColumn> columns,
                              absl::Span<const int64_t> rows) {
  if (columns.empty() || rows.empty()) return absl::OkStatus();
  const auto count = static_cast<int64_t>(rows.size());
  RILL_ASSIGN_OR_RETURN(const int64_t* const list, AddRows(rows));
  for (const RowColumn& column : columns) {
    if (!kernels_.empty() && kernels_.back().Add(column, list, count)) continue;
    kernels_.push_back({.table_rows = table_rows_});
    kernels_.back().Add(column, list, count);
  }
  return absl::OkStatus();
}

absl::Status GatherLists::Launch() {
  RILL_RETURN_IF_ERROR(uploads_.Send());
  for (const GatherListsKernel& kernel : kernels_) {
    RILL_RETURN_IF_ERROR(LaunchKernel(kernel, kernel.grid(), stream()));
  }
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
