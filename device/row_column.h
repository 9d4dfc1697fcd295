// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_ROW_COLUMN_H_
#define RILL_DEVICE_ROW_COLUMN_H_

#include <cstddef>
#include <cstdint>

namespace rill {

// One column of a row copy: `width` bytes of row r are at table + r *
// table_stride, its i-th place in the batch at batch + i * batch_stride. All in
// bytes. A plain struct, shared by the kernels of every device.
struct RowColumn {
  std::byte* table = nullptr;
  int64_t table_stride = 0;
  std::byte* batch = nullptr;
  int64_t batch_stride = 0;
  int64_t width = 0;
  // On the host: what is written is more than a cache would keep until it is
  // read, and goes to memory past the caches.
  bool past_caches = false;
  // For a scatter: a row has no columns but those of the call. Bytes behind
  // them, up to the next row, may be overwritten too.
  bool whole_rows = false;
};

// Where row `row` stands in the table, and place `place` in the batch.
constexpr std::byte* TableRow(const RowColumn& column, int64_t row) {
  return column.table + row * column.table_stride;
}
constexpr std::byte* BatchPlace(const RowColumn& column, int64_t place) {
  return column.batch + place * column.batch_stride;
}

}  // namespace rill

#endif  // RILL_DEVICE_ROW_COLUMN_H_
