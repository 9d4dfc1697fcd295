// SPDX-License-Identifier: Apache-2.0
// Lists of rows that are gathered together, beside gathers one by one.
#include "rill/storage/rows/gather_lists.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/kernels/host_grid.h"
#include "rill/device/kernels/testing/thread_grid.h"
#include "rill/device/row_copy.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/storage/rows/gather_lists_kernel.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

constexpr int64_t kTableRows = 50;

// Columns of all words and of no whole word, in records of a table; each with a
// list of its own, and places that follow one another or do not.
struct Lists {
  explicit Lists(uint64_t seed) {
    const Rng rng(seed, RngStream::kUser);
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] = std::byte(rng.UniformInt(1, static_cast<uint32_t>(i), 256));
    }
    int64_t offset = 0;
    int64_t place = 0;
    for (const int64_t width : {16, 8, 4, 2, 1, 7, 48, 300}) {
      const auto draw = static_cast<uint32_t>(width);
      std::vector<int64_t>& list = rows.emplace_back();
      const int64_t count = 1 + rng.UniformInt(2, draw, 40);
      for (int64_t i = 0; i < count; ++i) {
        list.push_back(rng.UniformInt(3, draw * 100 + static_cast<uint32_t>(i),
                                      kTableRows));
      }
      const int64_t stride = width + 16 * rng.UniformInt(4, draw, 2);
      columns.push_back({.table = table.data() + offset,
                         .table_stride = kRecord,
                         .batch = batch.data() + place,
                         .batch_stride = stride,
                         .width = width});
      offset += width;
      place += (count * stride + 15) / 16 * 16;
    }
  }
  std::vector<std::byte> Want() {
    for (size_t c = 0; c < columns.size(); ++c) {
      GatherRowsOnHost({&columns[c], 1}, rows[c]);
    }
    return std::exchange(batch, std::vector<std::byte>(batch.size()));
  }
  GatherListsKernel Kernel() const {
    GatherListsKernel kernel = {.table_rows = kTableRows};
    for (size_t c = 0; c < columns.size(); ++c) {
      EXPECT_TRUE(kernel.Add(columns[c], rows[c].data(),
                             static_cast<int64_t>(rows[c].size())));
    }
    return kernel;
  }

  static constexpr int64_t kRecord = 400;
  std::vector<std::byte> table{static_cast<size_t>(kTableRows * kRecord)};
  std::vector<std::byte> batch{static_cast<size_t>(40 * 500)};
  std::vector<RowColumn> columns;
  std::vector<std::vector<int64_t>> rows;
};

TEST(GatherListsTest, TheKernelGathersWhatTheHostDoesInAnyOrder) {
  for (uint64_t seed = 1; seed < 12; ++seed) {
    Lists lists(seed);
    const std::vector<std::byte> want = lists.Want();
    // Want has moved the batch.
    Lists same(seed);
    const GatherListsKernel kernel = same.Kernel();
    RunGridOnHost(kernel, kernel.grid(), /*order=*/seed);
    EXPECT_EQ(same.batch, want);
    std::fill(same.batch.begin(), same.batch.end(), std::byte{0});
    RunGridOnThreads(kernel, kernel.grid());
    EXPECT_EQ(same.batch, want);
  }
}

// More columns than a launch takes.
TEST(GatherListsTest, ManyColumnsTakeMoreLaunches) {
  FakeBackend* const fake = FakeBackend::Install({});
  constexpr int64_t kColumns = 40;
  {
    const Device device = Device::Fake(0);
    RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto table,
        Buffer::Allocate(kTableRows * 8, device, MemoryKind::kDevice));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto batch,
        Buffer::Allocate(kColumns * 8, device, MemoryKind::kDevice));
    std::vector<int64_t> values(kTableRows);
    for (int64_t i = 0; i < kTableRows; ++i) values[static_cast<size_t>(i)] = i;
    RILL_ASSERT_OK(
        CopyBlocking(table->data(), values.data(), kTableRows * 8, device));
    StreamUploads uploads(device);
    RILL_ASSERT_OK(uploads.Begin(stream));
    GatherLists gather(kTableRows, &uploads);
    for (int64_t i = 0; i < kColumns; ++i) {
      const RowColumn column = {.table = table->data(),
                                .table_stride = 8,
                                .batch = batch->data() + i * 8,
                                .batch_stride = 8,
                                .width = 8};
      const int64_t row = kTableRows - 1 - i;
      RILL_ASSERT_OK_AND_ASSIGN(const int64_t* const rows,
                                gather.AddRows({&row, 1}));
      gather.Add({&column, 1}, rows, 1);
    }
    EXPECT_THAT(gather.AddRows({}), IsOkAndHolds(nullptr));
    gather.Add({}, nullptr, 0);
    const int64_t launches = fake->Count(FakeBackend::Operation::kLaunch);
    RILL_ASSERT_OK(gather.Launch([] { return absl::OkStatus(); }));
    // 40 lists go in two launches, and their columns in two.
    EXPECT_EQ(fake->Count(FakeBackend::Operation::kLaunch) - launches, 4);
    RILL_ASSERT_OK(stream.Synchronize());
    uploads.End(nullptr);
    std::vector<int64_t> got(kColumns);
    RILL_ASSERT_OK(
        CopyBlocking(got.data(), batch->data(), kColumns * 8, device));
    for (int64_t i = 0; i < kColumns; ++i) {
      EXPECT_EQ(got[static_cast<size_t>(i)], kTableRows - 1 - i);
    }
    EXPECT_EQ(gather.rows().size(), kColumns);
  }
  EXPECT_THAT(fake->TakeMisuse(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace rill::storage_internal
