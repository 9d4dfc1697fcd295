// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_ROW_COPY_H_
#define RILL_DEVICE_ROW_COPY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "rill/device/row_column.h"  // IWYU pragma: export

namespace rill {

// Host kernels, shared by the host and the fake backend.
// GatherRows:  batch place i <- table row rows[i], for every column.
// ScatterRows: table row rows[i] <- batch place i; where a row is named twice
//   the later place wins.
//
// Rows are not checked: the caller has. Tables and batches must not overlap.
// Only the columns' bytes are written, but where RowColumn::whole_rows allows
// more.
// Thread-safety: thread-safe (reads of `table` are plain loads). Stores past
//   the caches are in order with all that the caller stores after the call, so
//   they are published like any other bytes.
// Cost: O(rows x columns), one pass a column with all rows prefetched ahead. A
//   random row so costs about one cache miss for each line it spans. Rows of a
//   KiB and more are gathered several at a time. Past the caches a copy moves
//   two thirds of the bytes: lines that are overwritten are not read before,
//   those that columns share neither where rows are whole. Narrow rows go so
//   where they are whole and some KiB of them follow one another.
void GatherRowsOnHost(absl::Span<const RowColumn> columns,
                      absl::Span<const int64_t> rows);
void ScatterRowsOnHost(absl::Span<const RowColumn> columns,
                       absl::Span<const int64_t> rows);

}  // namespace rill

#endif  // RILL_DEVICE_ROW_COPY_H_
