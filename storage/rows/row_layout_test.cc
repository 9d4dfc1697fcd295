// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/row_layout.h"

#include <cstdint>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

using ::testing::ElementsAre;

TensorDictSpec MixedSpec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(spec.Set("done", LeafSpec::Binary({1})));
  RILL_EXPECT_OK(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4})));
  RILL_EXPECT_OK(spec.Set("action", LeafSpec::Unbounded(DType::kInt64, {})));
  return spec;
}

RowLayout Make(const TensorDictSpec& spec, const Lanes& lanes,
               StorageLayout layout,
               StorageOrder order = StorageOrder::kLaneMajor) {
  return *RowLayout::Create(spec, lanes, layout, order);
}

TensorDictSpec BytesSpec(int64_t bytes, DType dtype = DType::kUInt8) {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("x", LeafSpec::Unbounded(dtype, {bytes / DTypeSize(dtype)})));
  return spec;
}

TEST(RowLayoutTest, RecordsHoldAlignedFieldsWithoutHoles) {
  const RowLayout layout = Make(MixedSpec(), {1, 10}, StorageLayout::kRows);
  // int64 first, then floats, then the flag: 25 bytes in 32.
  EXPECT_THAT(layout.fields(),
              ElementsAre(RowField{24, 32, 1}, RowField{8, 32, 16},
                          RowField{0, 32, 8}));
  EXPECT_EQ(layout.size_bytes(), 320);
}

TEST(RowLayoutTest, ColumnsStartOnTheirOwnCacheLines) {
  const RowLayout layout = Make(MixedSpec(), {1, 10}, StorageLayout::kColumns);
  EXPECT_THAT(layout.fields(),
              ElementsAre(RowField{0, 1, 1}, RowField{64, 16, 16},
                          RowField{256, 8, 8}));
  EXPECT_EQ(layout.size_bytes(), 336);
}

TEST(RowLayoutTest, RecordsAreRoundedUpWhereItIsCheap) {
  const auto stride = [](int64_t bytes, DType dtype = DType::kUInt8) {
    return Make(BytesSpec(bytes, dtype), {1, 2}, StorageLayout::kRows)
        .fields()[0]
        .stride;
  };
  EXPECT_EQ(stride(45), 64);  // One line instead of two now and then.
  EXPECT_EQ(stride(12, DType::kFloat32), 16);
  EXPECT_EQ(stride(33), 33);  // 64 would be nearly twice as much.
  EXPECT_EQ(stride(40, DType::kInt64), 40);
  EXPECT_EQ(stride(72, DType::kInt64), 72);
  EXPECT_EQ(stride(124, DType::kFloat32), 128);
  EXPECT_EQ(stride(3081), 3136);
  EXPECT_EQ(stride(0), 0);
}

TEST(RowLayoutTest, AutoTakesRecordsForNarrowRowsAndColumnsForWide) {
  EXPECT_EQ(Make(BytesSpec(64), {1, 2}, StorageLayout::kAuto).layout(),
            StorageLayout::kRows);
  EXPECT_EQ(
      Make(BytesSpec(kWidestRecordBytes + 1), {1, 2}, StorageLayout::kAuto)
          .layout(),
      StorageLayout::kColumns);
}

TEST(RowLayoutTest, TimeMajorPutsTheLanesOfAStepTogether) {
  const Lanes lanes = {.count = 3, .capacity = 4};
  const RowLayout layout =
      Make(BytesSpec(8), lanes, StorageLayout::kRows, StorageOrder::kTimeMajor);
  EXPECT_EQ(layout.RowOf(lanes.SlotOf(0, 0)), 0);
  EXPECT_EQ(layout.RowOf(lanes.SlotOf(1, 0)), 1);
  EXPECT_EQ(layout.RowOf(lanes.SlotOf(0, 1)), 3);
  EXPECT_EQ(layout.row_step(), 3);
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < lanes.num_slots(); ++slot) slots.push_back(slot);
  std::vector<int64_t> rows(slots.size());
  layout.RowsOf(slots, rows.data());
  for (const Slot slot : slots) EXPECT_EQ(rows[slot], layout.RowOf(slot));
  EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), rows.size());
}

TEST(RowLayoutTest, SlotNumbersPastThirtyTwoBitsAreMappedToo) {
  const Lanes lanes = {.count = 3, .capacity = int64_t{1} << 31};
  const RowLayout layout =
      Make(BytesSpec(0), lanes, StorageLayout::kRows, StorageOrder::kTimeMajor);
  const std::vector<Slot> slots = {lanes.SlotOf(2, lanes.capacity - 1)};
  std::vector<int64_t> rows(1);
  layout.RowsOf(slots, rows.data());
  EXPECT_EQ(rows[0], lanes.num_slots() - 1);
}

TEST(RowLayoutTest, LeavesLeaveRoomForTheDimensionOfRows) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set(
      "x", LeafSpec::Unbounded(DType::kInt8, {1, 1, 1, 1, 1, 1, 1, 1})));
  EXPECT_THAT(RowLayout::Create(spec, {1, 1}, StorageLayout::kRows,
                                StorageOrder::kLaneMajor),
              IsInvalidArgument("got 8, want at most 7"));
}

TEST(RowLayoutTest, WhatIsNoTensorIsRefused) {
  TensorDictSpec spec = MixedSpec();
  RILL_ASSERT_OK(spec.SetNonTensor("note"));
  EXPECT_THAT(RowLayout::Create(spec, {1, 1}, StorageLayout::kRows,
                                StorageOrder::kLaneMajor),
              IsInvalidArgument("\"note\", which is not a tensor"));
}

TEST(RowLayoutTest, BytesThatDoNotFitAreRefused) {
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    EXPECT_THAT(RowLayout::Create(BytesSpec(1 << 20), {1, int64_t{1} << 60},
                                  layout, StorageOrder::kLaneMajor),
                IsInvalidArgument("lower the capacity"));
  }
}

}  // namespace
}  // namespace rill::storage_internal
