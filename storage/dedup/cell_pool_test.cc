// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/dedup/cell_pool.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

ScopedFaultHook NoMemory() {
  return ScopedFaultHook([](absl::string_view point, absl::string_view) {
    return point == "host.allocate" ? absl::ResourceExhaustedError("injected")
                                    : absl::OkStatus();
  });
}

TEST(CellPoolTest, CellsAreApartAndStay) {
  constexpr int64_t kWidth = 300 << 10;  // Three in a chunk: two, that is.
  CellPool pool(kWidth, 7);
  std::vector<int32_t> cells;
  std::set<int32_t> distinct;
  for (int i = 0; i < 7; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const int32_t cell, pool.Take());
    std::memset(pool.At(cell), i, kWidth);
    cells.push_back(cell);
    distinct.insert(cell);
  }
  EXPECT_EQ(distinct.size(), 7u);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(pool.At(cells[i])[0], static_cast<std::byte>(i));
    EXPECT_EQ(pool.At(cells[i])[kWidth - 1], static_cast<std::byte>(i));
  }
}

TEST(CellPoolTest, CellsThatWereGivenBackAreTakenAgain) {
  CellPool pool(8, 1 << 20);
  RILL_ASSERT_OK_AND_ASSIGN(const int32_t cell, pool.Take());
  const int64_t bytes = pool.bytes();
  for (int i = 0; i < 1 << 20; ++i) {
    pool.GiveBack(cell);
    RILL_ASSERT_OK_AND_ASSIGN(const int32_t again, pool.Take());
    ASSERT_EQ(again, cell);
  }
  EXPECT_EQ(pool.bytes(), bytes);
}

TEST(CellPoolTest, WhatIsReservedCanBeTaken) {
  constexpr int64_t kWidth = 600 << 10;
  CellPool pool(kWidth, 5);
  RILL_ASSERT_OK(pool.Reserve(3));
  EXPECT_EQ(pool.bytes(), 3 * kWidth);
  const ScopedFaultHook hook = NoMemory();
  for (int i = 0; i < 3; ++i) RILL_EXPECT_OK(pool.Take().status());
  EXPECT_THAT(pool.Take(), IsResourceExhausted());
  EXPECT_THAT(pool.Reserve(1), IsResourceExhausted());
}

TEST(CellPoolTest, NeverTakesMoreThanAllCellsNeed) {
  CellPool pool(600 << 10, 5);
  RILL_ASSERT_OK(pool.Reserve(1000));
  EXPECT_EQ(pool.bytes(), 5 * (600 << 10));
  for (int i = 0; i < 5; ++i) RILL_EXPECT_OK(pool.Take().status());
  RILL_EXPECT_OK(pool.Reserve(1));  // All are taken: nobody can want one.
  pool.GiveBackAll();
  for (int i = 0; i < 5; ++i) RILL_EXPECT_OK(pool.Take().status());
  EXPECT_THAT(pool.Take(), IsResourceExhausted());
}

}  // namespace
}  // namespace rill::storage_internal
