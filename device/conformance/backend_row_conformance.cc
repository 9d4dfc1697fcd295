// SPDX-License-Identifier: Apache-2.0
// Row copies, against a plain loop.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/conformance/backend_conformance.h"
#include "rill/device/stream.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// A table of records or of separate columns, and a batch of columns, all in two
// arrays; columns say where, as offsets.
struct Layout {
  struct Column {
    int64_t table_offset, table_stride, batch_offset, batch_stride, width;
  };
  std::vector<Column> columns;
  int64_t table_bytes = 0;
  int64_t batch_bytes = 0;

  std::vector<RowColumn> At(std::byte* table, std::byte* batch) const {
    std::vector<RowColumn> result;
    for (const Column& c : columns) {
      result.push_back({table + c.table_offset, c.table_stride,
                        batch + c.batch_offset, c.batch_stride, c.width});
    }
    return result;
  }
  std::string ToString() const {
    std::string text;
    for (const Column& c : columns) {
      absl::StrAppend(&text, "{", c.table_offset, " +", c.table_stride, ", ",
                      c.batch_offset, " +", c.batch_stride, ", w", c.width,
                      "} ");
    }
    return text;
  }
};

Layout RandomLayout(const Rng& rng, uint64_t round, int64_t table_rows,
                    int64_t batch_rows) {
  constexpr int64_t kWidths[] = {1,  2,   3,   4,   5,   7,   8,   12,   13,
                                 16, 17,  20,  24,  28,  32,  33,  48,   64,
                                 65, 100, 128, 200, 256, 257, 300, 1024, 1500};
  uint32_t draw = 0;
  const auto pick = [&](int64_t bound) {
    return rng.UniformInt(round, draw++, bound);
  };
  const bool packed = pick(2) == 0;
  const int64_t gap = pick(3) == 0 ? pick(9) : 0;
  Layout layout;
  int64_t record = 0;
  const int64_t columns = 1 + pick(5);
  for (int64_t i = 0; i < columns; ++i) {
    const int64_t width = kWidths[pick(std::size(kWidths))];
    layout.columns.push_back({packed ? record : layout.table_bytes, width + gap,
                              layout.batch_bytes, width + gap, width});
    record += width + gap;
    if (!packed) layout.table_bytes += table_rows * (width + gap);
    layout.batch_bytes += batch_rows * (width + gap);
  }
  if (packed) {
    for (Layout::Column& column : layout.columns) column.table_stride = record;
    layout.table_bytes = table_rows * record;
  }
  return layout;
}

std::vector<uint8_t> Noise(const Rng& rng, uint64_t round, int64_t bytes) {
  std::vector<uint8_t> noise(bytes);
  for (int64_t at = 0; at < bytes; at += sizeof(Rng::Block)) {
    const Rng::Block block = rng.Bits(round, 1000 + at);
    std::memcpy(&noise[at], block.data(),
                std::min<int64_t>(sizeof(block), bytes - at));
  }
  return noise;
}

// The same copies, byte for byte, the slow way.
void CopyPlainly(const Layout& layout, bool gather, uint8_t* table,
                 uint8_t* batch, const std::vector<int64_t>& rows) {
  for (const Layout::Column& c : layout.columns) {
    for (size_t i = 0; i < rows.size(); ++i) {
      uint8_t* in_table = table + c.table_offset + rows[i] * c.table_stride;
      uint8_t* in_batch =
          batch + c.batch_offset + static_cast<int64_t>(i) * c.batch_stride;
      std::memcpy(gather ? in_batch : in_table, gather ? in_table : in_batch,
                  c.width);
    }
  }
}

class RowCase {
 public:
  RowCase(uint64_t round, int64_t table_rows, int64_t num_rows, bool repeats)
      : rng_(/*seed=*/42) {
    layout =
        RandomLayout(rng_, round, table_rows, std::max<int64_t>(1, num_rows));
    table = Noise(rng_, 2 * round, layout.table_bytes);
    batch = Noise(rng_, 2 * round + 1, layout.batch_bytes);
    const int64_t step = 7;  // Prime to the sizes used: all rows differ.
    for (int64_t i = 0; i < num_rows; ++i) {
      rows.push_back(repeats ? rng_.UniformInt(round, 900000 + i, table_rows)
                             : (i * step) % table_rows);
    }
  }

  Layout layout;
  std::vector<uint8_t> table, batch;
  std::vector<int64_t> rows;

 private:
  Rng rng_;
};

TEST_P(BackendConformanceTest, GatherRowsAgreesWithAPlainLoop) {
  for (uint64_t round = 0; round < 60; ++round) {
    RowCase c(round, /*table_rows=*/60, /*num_rows=*/round * 3,
              /*repeats=*/true);
    const auto table = Upload(c.table);
    const auto batch = Upload(c.batch);
    RILL_ASSERT_OK(backend()->GatherRows(
        index(), c.layout.At(table->data(), batch->data()), c.rows, {}));
    RILL_ASSERT_OK(backend()->SynchronizeStream(index(), {}));
    CopyPlainly(c.layout, /*gather=*/true, c.table.data(), c.batch.data(),
                c.rows);
    ASSERT_EQ(Download(batch->data(), c.batch.size()), c.batch)
        << c.layout.ToString();
    ASSERT_EQ(Download(table->data(), c.table.size()), c.table);
  }
}

TEST_P(BackendConformanceTest, ScatterRowsAgreesWithAPlainLoop) {
  for (uint64_t round = 0; round < 60; ++round) {
    // With repeats the later place wins.
    RowCase c(round, /*table_rows=*/60, /*num_rows=*/round,
              /*repeats=*/round % 2 == 0);
    const auto table = Upload(c.table);
    const auto batch = Upload(c.batch);
    RILL_ASSERT_OK(backend()->ScatterRows(
        index(), c.layout.At(table->data(), batch->data()), c.rows, {}));
    RILL_ASSERT_OK(backend()->SynchronizeStream(index(), {}));
    CopyPlainly(c.layout, /*gather=*/false, c.table.data(), c.batch.data(),
                c.rows);
    ASSERT_EQ(Download(table->data(), c.table.size()), c.table)
        << c.layout.ToString();
    ASSERT_EQ(Download(batch->data(), c.batch.size()), c.batch);
  }
}

TEST_P(BackendConformanceTest, ScatterOfOneRowManyTimesKeepsTheLastPlace) {
  const int64_t n = 3000;
  std::vector<uint8_t> places(n * 8);
  for (int64_t i = 0; i < n; ++i) std::memcpy(&places[i * 8], &i, 8);
  const auto table = Upload(std::vector<uint8_t>(16));
  const auto batch = Upload(places);
  const RowColumn column = {table->data(), 8, batch->data(), 8, 8};
  RILL_ASSERT_OK(backend()->ScatterRows(index(), {column},
                                        std::vector<int64_t>(n, 1), {}));
  RILL_ASSERT_OK(backend()->SynchronizeStream(index(), {}));
  int64_t last = 0;
  std::memcpy(&last, Download(table->data() + 8, 8).data(), 8);
  EXPECT_EQ(last, n - 1);
}

TEST_P(BackendConformanceTest, RowListMayBeReusedWhenTheCallReturns) {
  const auto table = Upload({10, 11, 12, 13});
  const auto batch = Upload({0, 0, 0, 0});
  std::vector<int64_t> rows = {3, 1, 2, 0};
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  const RowColumn column = {table->data(), 1, batch->data(), 1, 1};
  RILL_ASSERT_OK(
      backend()->GatherRows(index(), {column}, rows, stream.handle()));
  rows.assign(4, 0);
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(Download(batch->data(), 4),
              ::testing::ElementsAre(13, 11, 12, 10));
}

TEST_P(BackendConformanceTest, RowCopiesKeepTheOrderOfTheirStream) {
  const auto table = Upload({0, 0});
  const auto batch = Upload({5, 6});
  const auto result = Upload({0, 0});
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  const RowColumn in = {table->data(), 1, batch->data(), 1, 1};
  const RowColumn out = {table->data(), 1, result->data(), 1, 1};
  RILL_ASSERT_OK(backend()->ScatterRows(
      index(), {in}, std::vector<int64_t>{1, 0}, stream.handle()));
  RILL_ASSERT_OK(backend()->GatherRows(
      index(), {out}, std::vector<int64_t>{0, 1}, stream.handle()));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(Download(result->data(), 2), ::testing::ElementsAre(6, 5));
}

TEST_P(BackendConformanceTest, RowCopiesOfNothingAreOk) {
  RILL_EXPECT_OK(backend()->GatherRows(index(), {}, {}, {}));
  RILL_EXPECT_OK(
      backend()->ScatterRows(index(), {}, std::vector<int64_t>{1}, {}));
  RILL_EXPECT_OK(backend()->GatherRows(index(), {RowColumn()}, {}, {}));
}

}  // namespace
}  // namespace rill
