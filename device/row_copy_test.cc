// SPDX-License-Identifier: Apache-2.0
// Every width's kernel, byte for byte; the suite in device/conformance adds
// layouts and orders.
#include "rill/device/row_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill {
namespace {

constexpr int64_t kRows = 37;
constexpr uint8_t kGuard = 0xA5;

std::byte* Bytes(std::vector<uint8_t>& v) {
  return reinterpret_cast<std::byte*>(v.data());
}

// The byte that row `row` has at `at`.
uint8_t Value(int64_t row, int64_t at) { return (row * 31 + at * 7 + 1) % 251; }

std::vector<int64_t> RandomRows(int64_t width) {
  const Rng rng(/*seed=*/width);
  std::vector<int64_t> rows(50);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = rng.UniformInt(0, i, kRows);
  }
  return rows;
}

TEST(RowCopyTest, GatherCopiesEveryWidthAndNotAByteMore) {
  for (int64_t width = 1; width <= 600; ++width) {
    // Bytes between the rows belong to somebody else; so does what is behind.
    const int64_t stride = width + 3;
    std::vector<uint8_t> table(kRows * stride - 3);
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] = Value(i / stride, i % stride);
    }
    const std::vector<int64_t> rows = RandomRows(width);
    std::vector<uint8_t> batch(rows.size() * stride, kGuard);
    GatherRowsOnHost({{Bytes(table), stride, Bytes(batch), stride, width}},
                     rows);
    for (size_t i = 0; i < batch.size(); ++i) {
      const int64_t at = i % stride;
      ASSERT_EQ(batch[i], at < width ? Value(rows[i / stride], at) : kGuard)
          << "width " << width << " byte " << i;
    }
  }
}

// Widths around lines and pages, batches at every place in a line, few rows and
// more than a block has.
TEST(RowCopyTest, WideRowsAreCopiedFromAndToEveryAlignment) {
  constexpr int64_t kMaxWidth = 10'000;
  constexpr int64_t kLine = 64;
  const Rng rng(/*seed=*/7);
  uint64_t draw = 0;
  const auto below = [&](int64_t n) { return rng.UniformInt(draw++, 0, n); };
  std::vector<uint8_t> memory(9 * (kMaxWidth + kLine) + kLine);
  for (uint8_t& byte : memory) byte = static_cast<uint8_t>(below(256));
  for (int64_t turn = 0; turn < 6000; ++turn) {
    const int64_t width =
        turn % 2 == 0 ? 1000 + below(200) : 1024 + below(kMaxWidth - 1024);
    const int64_t table_stride = width + below(kLine);
    const int64_t batch_stride = width + below(kLine);
    const int64_t table_at = below(kLine);
    const int64_t batch_at = turn % kLine;
    std::vector<int64_t> rows(below(turn % 1000 == 0 ? 600
                                    : turn % 16 == 0 ? 40
                                                     : 5));
    for (int64_t& row : rows) row = below(9);
    std::vector<uint8_t> batch(
        kLine + batch_at + static_cast<int64_t>(rows.size()) * batch_stride,
        kGuard);
    std::byte* const begin =
        Bytes(batch) + (-reinterpret_cast<uintptr_t>(batch.data()) % kLine);
    std::vector<uint8_t> want = batch;
    const int64_t first = begin + batch_at - Bytes(batch);
    for (size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(want.data() + first + static_cast<int64_t>(i) * batch_stride,
                  memory.data() + table_at + rows[i] * table_stride, width);
    }
    RowColumn column = {.table = Bytes(memory) + table_at,
                        .table_stride = table_stride,
                        .batch = begin + batch_at,
                        .batch_stride = batch_stride,
                        .width = width,
                        .past_caches = turn / 2 % 2 == 0};
    GatherRowsOnHost({column}, rows);
    ASSERT_EQ(batch, want) << "turn " << turn << " width " << width;

    // And back to others of these rows.
    column.width = width - below(600);
    for (int64_t& row : rows) row = below(9);
    std::vector<uint8_t> written = memory;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(written.data() + table_at + rows[i] * table_stride,
                  want.data() + first + static_cast<int64_t>(i) * batch_stride,
                  column.width);
    }
    ScatterRowsOnHost({column}, rows);
    ASSERT_EQ(memory, written) << "turn " << turn << " width " << column.width;
    ASSERT_EQ(batch, want) << "turn " << turn;
  }
}

// Columns in any order, with gaps or without; rows of whole lines and others, a
// column that is missing, one that is not to pass the caches.
TEST(RowCopyTest, WholeRecordsAreCopiedAndNoOther) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kTableRows = 12;
  const Rng rng(/*seed=*/11);
  uint64_t draw = 0;
  const auto below = [&](int64_t n) { return rng.UniformInt(draw++, 0, n); };
  for (int turn = 0; turn < 500; ++turn) {
    std::vector<RowColumn> columns(1 + below(turn % 50 == 0 ? 80 : 8));
    const int64_t gap = turn % 13 == 0 ? below(5) : 0;
    int64_t bytes = 0;
    for (RowColumn& column : columns) {
      column.width = below(3) == 0 ? 512 + below(2000) : 1 + below(20);
      bytes += gap + column.width;
    }
    bytes -= gap;
    int64_t stride = (bytes + kLine - 1) / kLine * kLine;
    if (turn % 5 == 0) stride += below(9);
    std::vector<uint8_t> table(kTableRows * stride + 2 * kLine, kGuard);
    std::byte* const start =
        Bytes(table) + (-reinterpret_cast<uintptr_t>(table.data()) % kLine) +
        (turn % 7 == 0 ? 8 : 0);
    std::vector<int64_t> rows(below(30));
    for (int64_t& row : rows) row = below(kTableRows);
    std::vector<std::vector<uint8_t>> batches;
    int64_t at = 0;
    for (RowColumn& column : columns) {
      batches.emplace_back(rows.size() * column.width + 1);
      for (uint8_t& byte : batches.back()) byte = below(256);
      column.table = start + at;
      column.table_stride = stride;
      column.batch = Bytes(batches.back());
      column.batch_stride = column.width;
      column.past_caches = turn % 11 != 0 || below(2) == 0;
      column.whole_rows = turn % 3 != 0;
      at += column.width + gap;
    }
    std::vector<uint8_t> want = table;
    std::byte* const same = Bytes(want) + (start - Bytes(table));
    if (turn % 3 == 0) columns.erase(columns.begin() + below(columns.size()));
    for (size_t i = columns.size(); i > 1; --i) {
      std::swap(columns[i - 1], columns[below(i)]);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const RowColumn& column : columns) {
        std::memcpy(same + rows[i] * stride + (column.table - start),
                    column.batch + i * column.width, column.width);
      }
    }
    ScatterRowsOnHost(columns, rows);
    if (turn % 3 != 0) {  // Between whole rows there may be anything.
      for (int64_t row = 0; row < kTableRows; ++row) {
        std::memcpy(same + row * stride + bytes, start + row * stride + bytes,
                    stride - bytes);
      }
    }
    ASSERT_EQ(table, want) << "turn " << turn;
  }
}

// Long runs and short ones, rows that are named again, and others.
TEST(RowCopyTest, RunsOfNarrowRowsAreCopiedAndNoOther) {
  constexpr int64_t kTableRows = 2000;
  const Rng rng(/*seed=*/12);
  uint64_t draw = 0;
  const auto below = [&](int64_t n) { return rng.UniformInt(draw++, 0, n); };
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<RowColumn> columns(1 + below(6));
    int64_t bytes = 0;
    for (RowColumn& column : columns) {
      column.width = 1 + below(turn % 2 == 0 ? 8 : 100);
      bytes += column.width;
    }
    const int64_t stride = bytes + (turn % 3 == 0 ? 0 : below(9));
    std::vector<uint8_t> table(kTableRows * stride + 64, kGuard);
    std::byte* const start = Bytes(table) + below(64);
    std::vector<int64_t> rows;
    for (int64_t run = 0; run < 4; ++run) {
      const int64_t first = below(kTableRows);
      const int64_t most = std::min<int64_t>(kTableRows - first, 900);
      const int64_t count = run % 2 == 0 ? 1 + below(most) : 1;
      for (int64_t i = 0; i < count; ++i) rows.push_back(first + i);
    }
    std::vector<std::vector<uint8_t>> batches;
    int64_t at = 0;
    for (RowColumn& column : columns) {
      batches.emplace_back(rows.size() * column.width);
      for (uint8_t& byte : batches.back()) byte = below(256);
      column.table = start + at;
      column.table_stride = stride;
      column.batch = Bytes(batches.back());
      column.batch_stride = column.width;
      column.past_caches = column.whole_rows = true;
      at += column.width;
    }
    for (size_t i = columns.size(); i > 1; --i) {
      std::swap(columns[i - 1], columns[below(i)]);
    }
    std::vector<uint8_t> want = table;
    std::byte* const same = Bytes(want) + (start - Bytes(table));
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const RowColumn& column : columns) {
        std::memcpy(same + rows[i] * stride + (column.table - start),
                    column.batch + i * column.width, column.width);
      }
      // Between whole rows there may be anything.
      std::memset(same + rows[i] * stride + bytes, kGuard + 1, stride - bytes);
    }
    ScatterRowsOnHost(columns, rows);
    for (const int64_t row : rows) {
      std::memset(start + row * stride + bytes, kGuard + 1, stride - bytes);
    }
    ASSERT_EQ(table, want) << "turn " << turn;
  }
}

TEST(RowCopyTest, ScatterCopiesEveryWidthAndNotAByteMore) {
  for (int64_t width = 1; width <= 600; ++width) {
    const int64_t stride = width + 3;
    const std::vector<int64_t> rows = RandomRows(width);
    std::vector<uint8_t> batch(rows.size() * width);
    for (size_t i = 0; i < batch.size(); ++i) {
      batch[i] = Value(i / width, i % width);
    }
    std::vector<int64_t> last(kRows, -1);  // Who writes a row last.
    for (size_t i = 0; i < rows.size(); ++i) last[rows[i]] = i;
    std::vector<uint8_t> table(kRows * stride - 3, kGuard);
    ScatterRowsOnHost({{Bytes(table), stride, Bytes(batch), width, width}},
                      rows);
    for (size_t i = 0; i < table.size(); ++i) {
      const int64_t at = i % stride, place = last[i / stride];
      ASSERT_EQ(table[i], at < width && place >= 0 ? Value(place, at) : kGuard)
          << "width " << width << " byte " << i;
    }
  }
}

TEST(RowCopyTest, ColumnsOfManyRecordsAreAllCopied) {
  // More columns than kernels are kept for, in one record.
  constexpr int64_t kColumns = 150;
  std::vector<uint8_t> table(kRows * kColumns);
  for (size_t i = 0; i < table.size(); ++i) table[i] = i % 253;
  const std::vector<int64_t> rows = {5, 0, 36, 5};
  std::vector<uint8_t> batch(kColumns * rows.size());
  std::vector<RowColumn> columns;
  for (int64_t c = 0; c < kColumns; ++c) {
    columns.push_back({Bytes(table) + c, kColumns,
                       Bytes(batch) + c * static_cast<int64_t>(rows.size()), 1,
                       1});
  }
  GatherRowsOnHost(columns, rows);
  for (int64_t c = 0; c < kColumns; ++c) {
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(batch[c * rows.size() + i], table[rows[i] * kColumns + c]);
    }
  }
}

TEST(RowCopyTest, NothingIsCopiedWhereThereIsNothing) {
  GatherRowsOnHost({}, std::vector<int64_t>{1});
  GatherRowsOnHost({RowColumn()}, {});
  ScatterRowsOnHost({RowColumn()}, std::vector<int64_t>{0});  // Width 0.
}

}  // namespace
}  // namespace rill
