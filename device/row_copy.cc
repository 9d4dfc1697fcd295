// SPDX-License-Identifier: Apache-2.0
#include "rill/device/row_copy.h"

#include <algorithm>
#include <cstring>

namespace rill {
namespace {

constexpr int64_t kLineBytes = 64;
// What is prefetched ahead must still be in the first-level cache when it is
// copied, beside the batch that is written.
constexpr int64_t kAheadBytes = 16 << 10;
// Behind so many lines of one row the hardware prefetcher has seen the stream.
constexpr int64_t kMaxLinesAhead = 16;

struct Gather {
  static constexpr int kWillWrite = 0;
  static std::byte* To(std::byte* /*table*/, std::byte* batch) { return batch; }
  static std::byte* From(std::byte* table, std::byte* /*batch*/) {
    return table;
  }
};
struct Scatter {
  static constexpr int kWillWrite = 1;
  static std::byte* To(std::byte* table, std::byte* /*batch*/) { return table; }
  static std::byte* From(std::byte* /*table*/, std::byte* batch) {
    return batch;
  }
};

// Copies batch places [begin, end) of a column.
using Kernel = void (*)(const RowColumn& column, const int64_t* rows,
                        int64_t begin, int64_t end);

template <typename Direction, typename CopyOne>
inline void ForEachRow(const RowColumn& column, const int64_t* rows,
                       int64_t begin, int64_t end, CopyOne copy_one) {
  std::byte* batch = BatchPlace(column, begin);
  for (int64_t i = begin; i < end; ++i, batch += column.batch_stride) {
    std::byte* table = TableRow(column, rows[i]);
    copy_one(Direction::To(table, batch), Direction::From(table, batch));
  }
}

template <typename Direction, int64_t kWidth>
void CopyFixed(const RowColumn& column, const int64_t* rows, int64_t begin,
               int64_t end) {
  ForEachRow<Direction>(column, rows, begin, end,
                        [](std::byte* to, const std::byte* from) {
                          std::memcpy(to, from, kWidth);
                        });
}

// Any width: the library's memcpy.
template <typename Direction>
void CopyLong(const RowColumn& column, const int64_t* rows, int64_t begin,
              int64_t end) {
  ForEachRow<Direction>(
      column, rows, begin, end,
      [width = column.width](std::byte* to, const std::byte* from) {
        std::memcpy(to, from, width);
      });
}

// Widths of a few blocks: blocks, the last of which overlaps the one
// before.
template <typename Direction, int64_t kBlock>
void CopyBlocks(const RowColumn& column, const int64_t* rows, int64_t begin,
                int64_t end) {
  ForEachRow<Direction>(
      column, rows, begin, end,
      [last = column.width - kBlock](std::byte* to, const std::byte* from) {
        for (int64_t at = 0; at < last; at += kBlock) {
          std::memcpy(to + at, from + at, kBlock);
        }
        std::memcpy(to + last, from + last, kBlock);
      });
}

template <typename Direction>
Kernel ChooseKernel(int64_t width) {
  switch (width) {
    case 1:
      return CopyFixed<Direction, 1>;
    case 2:
      return CopyFixed<Direction, 2>;
    case 4:
      return CopyFixed<Direction, 4>;
    case 8:
      return CopyFixed<Direction, 8>;
    case 12:
      return CopyFixed<Direction, 12>;
    case 16:
      return CopyFixed<Direction, 16>;
    case 24:
      return CopyFixed<Direction, 24>;
    case 32:
      return CopyFixed<Direction, 32>;
    case 48:
      return CopyFixed<Direction, 48>;
    case 64:
      return CopyFixed<Direction, 64>;
    default:
      break;
  }
  if (width > 4 && width < 16) return CopyBlocks<Direction, 4>;
  if (width > 16 && width < 64) return CopyBlocks<Direction, 16>;
  return CopyLong<Direction>;
}

// Neighbouring columns that lie in one record: [low, low + bytes) of it, and
// records are `stride` apart. One prefetch serves all of them.
struct Record {
  std::byte* low = nullptr;
  int64_t bytes = 0;
  int64_t stride = 0;
  size_t columns = 0;
};

Record FirstRecord(absl::Span<const RowColumn> columns) {
  std::byte* low = columns[0].table;
  std::byte* high = low + columns[0].width;
  size_t count = 1;
  for (; count < columns.size(); ++count) {
    const RowColumn& next = columns[count];
    std::byte* const new_low = std::min(low, next.table);
    std::byte* const new_high = std::max(high, next.table + next.width);
    if (next.table_stride != columns[0].table_stride ||
        new_high - new_low > next.table_stride) {
      break;
    }
    low = new_low;
    high = new_high;
  }
  return {low, high - low, columns[0].table_stride, count};
}

template <typename Direction>
inline void Prefetch(const Record& record, const int64_t* rows, int64_t begin,
                     int64_t end) {
  const int64_t bytes = std::min(record.bytes, kMaxLinesAhead * kLineBytes);
  for (int64_t i = begin; i < end; ++i) {
    const std::byte* row = record.low + rows[i] * record.stride;
    for (int64_t at = 0; at < bytes; at += kLineBytes) {
      __builtin_prefetch(row + at, Direction::kWillWrite);
    }
    __builtin_prefetch(row + bytes - 1, Direction::kWillWrite);
  }
}

template <typename Direction>
void CopyRecord(const Record& record, absl::Span<const RowColumn> columns,
                absl::Span<const int64_t> rows) {
  constexpr size_t kMaxKernels = 64;
  Kernel kernels[kMaxKernels];
  for (size_t first = 0; first < columns.size(); first += kMaxKernels) {
    const size_t count = std::min(kMaxKernels, columns.size() - first);
    for (size_t c = 0; c < count; ++c) {
      kernels[c] = ChooseKernel<Direction>(columns[first + c].width);
    }
    const int64_t n = static_cast<int64_t>(rows.size());
    const int64_t step =
        std::max<int64_t>(1, kAheadBytes / (record.bytes + kLineBytes));
    Prefetch<Direction>(record, rows.data(), 0, std::min(step, n));
    for (int64_t begin = 0; begin < n; begin += step) {
      const int64_t end = std::min(begin + step, n);
      Prefetch<Direction>(record, rows.data(), end, std::min(end + step, n));
      for (size_t c = 0; c < count; ++c) {
        kernels[c](columns[first + c], rows.data(), begin, end);
      }
    }
  }
}

template <typename Direction>
void CopyRows(absl::Span<const RowColumn> columns,
              absl::Span<const int64_t> rows) {
  while (!columns.empty()) {
    const Record record = FirstRecord(columns);
    if (record.bytes > 0) {
      CopyRecord<Direction>(record, columns.first(record.columns), rows);
    }
    columns.remove_prefix(record.columns);
  }
}

}  // namespace

void GatherRowsOnHost(absl::Span<const RowColumn> columns,
                      absl::Span<const int64_t> rows) {
  CopyRows<Gather>(columns, rows);
}

void ScatterRowsOnHost(absl::Span<const RowColumn> columns,
                       absl::Span<const int64_t> rows) {
  CopyRows<Scatter>(columns, rows);
}

}  // namespace rill
