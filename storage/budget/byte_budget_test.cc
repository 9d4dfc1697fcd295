// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/budget/byte_budget.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<Storage>> RunExample(
    const TensorDictSpec& spec) {
  RILL_ASSIGN_OR_RETURN(const int64_t capacity,
                        CapacityForBytes(spec, int64_t{1} << 20, {.lanes = 4}));
  RILL_ASSIGN_OR_RETURN(
      auto storage,
      DenseStorage::Create({.capacity = capacity, .lanes = 4, .spec = spec}));
  return storage;
}

TEST(ByteBudgetTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, RunExample(ConformanceSpec()));
  EXPECT_LE(storage->MemoryUsage().full, int64_t{1} << 20);
  EXPECT_GT(storage->MemoryUsage().full, (int64_t{1} << 20) * 9 / 10);
}

// MemoryUsage().full of a storage of this capacity.
absl::StatusOr<int64_t> FullBytes(int64_t capacity,
                                  const ByteBudgetOptions& options,
                                  const TensorDictSpec& spec) {
  if (!options.in_files) {
    RILL_ASSIGN_OR_RETURN(const auto storage,
                          DenseStorage::Create({.capacity = capacity,
                                                .lanes = options.lanes,
                                                .layout = options.layout,
                                                .spec = spec}));
    return storage->MemoryUsage().full;
  }
  const std::string directory = JoinPath(::testing::TempDir(), "byte_budget");
  RILL_RETURN_IF_ERROR(RemoveAll(directory));
  RILL_ASSIGN_OR_RETURN(const auto storage,
                        MemmapStorage::Create({.directory = directory,
                                               .capacity = capacity,
                                               .lanes = options.lanes,
                                               .layout = options.layout,
                                               .spec = spec}));
  return storage->MemoryUsage().full;
}

TEST(ByteBudgetTest, OneRowMoreALaneWouldNotFit) {
  const Rng rng(3);
  const TensorDictSpec& spec = ConformanceSpec();
  uint64_t round = 0;
  for (const StorageLayout layout :
       {StorageLayout::kAuto, StorageLayout::kRows, StorageLayout::kColumns}) {
    for (const bool in_files : {false, true}) {
      for (const int64_t lanes : {1, 3, 64}) {
        for (int i = 0; i < (in_files ? 2 : 8); ++i) {
          const ByteBudgetOptions options = {
              .lanes = lanes, .layout = layout, .in_files = in_files};
          const int64_t bytes =
              (int64_t{1} << 18) + rng.UniformInt(round++, 0, 1 << 20);
          SCOPED_TRACE(absl::StrCat(bytes, " bytes, ", lanes, " lanes, ",
                                    in_files ? "files" : "memory"));
          RILL_ASSERT_OK_AND_ASSIGN(const int64_t capacity,
                                    CapacityForBytes(spec, bytes, options));
          EXPECT_EQ(capacity % lanes, 0);
          RILL_ASSERT_OK_AND_ASSIGN(const int64_t full,
                                    FullBytes(capacity, options, spec));
          EXPECT_LE(full, bytes);
          RILL_ASSERT_OK_AND_ASSIGN(const int64_t beyond,
                                    FullBytes(capacity + lanes, options, spec));
          EXPECT_GT(beyond, bytes);
        }
      }
    }
  }
}

TEST(ByteBudgetTest, OneRowALaneIsTheLeast) {
  const ByteBudgetOptions options = {.lanes = 5,
                                     .layout = StorageLayout::kRows};
  RILL_ASSERT_OK_AND_ASSIGN(const int64_t least,
                            FullBytes(5, options, ConformanceSpec()));
  EXPECT_THAT(CapacityForBytes(ConformanceSpec(), least, options),
              IsOkAndHolds(5));
  EXPECT_THAT(CapacityForBytes(ConformanceSpec(), least - 1, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(absl::StrCat("got ", least - 1)),
                             HasSubstr(absl::StrCat(">= ", least)),
                             HasSubstr("5 lanes"))));
  for (const int64_t bad :
       {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(CapacityForBytes(ConformanceSpec(), bad, options),
                IsInvalidArgument());
  }
}

TEST(ByteBudgetTest, BudgetsOfAllSizesAreTaken) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("x", LeafSpec::Unbounded(DType::kUInt8, {})));
  EXPECT_THAT(CapacityForBytes(spec, 1000), IsOkAndHolds(1000));
  // No more than a storage takes.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMostSlots = int64_t{1} << 40;
  for (const int64_t bytes : {kMostSlots, int64_t{1} << 62, kMost - 1, kMost}) {
    EXPECT_THAT(CapacityForBytes(spec, bytes), IsOkAndHolds(kMostSlots));
    EXPECT_THAT(CapacityForBytes(spec, bytes, {.lanes = 3}),
                IsOkAndHolds(kMostSlots / 3 * 3));
  }
  EXPECT_THAT(CapacityForBytes(spec, kMostSlots - 1),
              IsOkAndHolds(kMostSlots - 1));
}

TEST(ByteBudgetTest, WhatCannotBeToldIsRefused) {
  EXPECT_THAT(CapacityForBytes(TensorDictSpec(), 1 << 20),
              IsInvalidArgument("TensorDictSpec::Of"));
  TensorDictSpec nothing;
  RILL_ASSERT_OK(nothing.Set("x", LeafSpec::Unbounded(DType::kFloat32, {0})));
  EXPECT_THAT(CapacityForBytes(nothing, 1 << 20), IsInvalidArgument("0 bytes"));
  for (const int64_t lanes :
       {int64_t{0}, int64_t{-2}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(CapacityForBytes(ConformanceSpec(), 1 << 20, {.lanes = lanes}),
                IsInvalidArgument(absl::StrCat(lanes)));
  }
}

}  // namespace
}  // namespace rill
