// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/consolidated/jagged.h"

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"

namespace rill::formats_internal {
namespace {

Tensor Counted(const Shape& shape, int32_t first) {
  std::vector<int32_t> values(static_cast<size_t>(shape.num_elements()));
  for (int32_t& value : values) value = first++;
  return *Tensor::From<int32_t>(values, shape);
}

Tensor Zeros(const Shape& shape) {
  return *Tensor::Zeros(DType::kInt32, shape);
}

// Rows of random sizes against slices of the joined values.
TEST(JaggedTest, RowsAreSlicesOfTheValues) {
  const Rng rng(5);
  for (uint64_t round = 0; round < 200; ++round) {
    const int rank = static_cast<int>(1 + rng.UniformInt(round, 0, 3));
    const int dim = static_cast<int>(rng.UniformInt(round, 1, rank));
    std::vector<int64_t> sizes;
    for (int d = 0; d < rank; ++d) {
      sizes.push_back(static_cast<int64_t>(rng.UniformInt(round, 2 + d, 4)));
    }
    std::vector<Tensor> rows;
    const uint64_t n = 1 + rng.UniformInt(round, 8, 4);
    for (uint64_t row = 0; row < n; ++row) {
      sizes[dim] = static_cast<int64_t>(rng.UniformInt(round, 9 + row, 4));
      RILL_ASSERT_OK_AND_ASSIGN(const Shape shape, Shape::Create(sizes));
      rows.push_back(Counted(shape, static_cast<int32_t>(100 * row)));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor ragged,
                              RaggedTensor::FromRows(rows));
    RILL_ASSERT_OK_AND_ASSIGN(const Jagged jagged, ToJagged(ragged));
    const int64_t* const offsets = jagged.offsets.data<int64_t>();
    for (uint64_t row = 0; row < n; ++row) {
      RILL_ASSERT_OK_AND_ASSIGN(
          const Tensor slice,
          jagged.values.Slice(jagged.ragged_dim, offsets[row],
                              offsets[row + 1]));
      EXPECT_THAT(slice.BitEquals(rows[row]), IsOkAndHolds(true)) << round;
    }
    RILL_ASSERT_OK_AND_ASSIGN(
        const RaggedTensor again,
        FromJagged(jagged.values, {offsets, n + 1}, {}, jagged.ragged_dim));
    EXPECT_THAT(again.shapes().BitEquals(ragged.shapes()), IsOkAndHolds(true));
    EXPECT_THAT(again.values().BitEquals(ragged.values()), IsOkAndHolds(true));
  }
}

TEST(JaggedTest, RowsThatLieOneBehindTheOtherAreViews) {
  const Tensor values = Counted({5, 2}, 0);
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor rows,
                            FromJagged(values, {0, 2, 5}, {}, 0));
  EXPECT_EQ(rows.values().raw_data(), values.raw_data());
  RILL_ASSERT_OK_AND_ASSIGN(const Jagged jagged, ToJagged(rows));
  EXPECT_EQ(jagged.values.raw_data(), values.raw_data());
}

TEST(JaggedTest, LengthsAndOffsetsMayLeaveSomethingOut) {
  const Tensor values = Counted({7}, 0);
  const auto row = [&](absl::Span<const int64_t> lengths, int64_t index) {
    auto rows = FromJagged(values, {1, 4, 6}, lengths, 0);
    RILL_EXPECT_OK(rows);
    auto one = rows->Row(index);
    RILL_EXPECT_OK(one);
    return std::vector<int32_t>(one->data<int32_t>(),
                                one->data<int32_t>() + one->num_elements());
  };
  EXPECT_EQ(row({}, 0), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(row({}, 1), (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(row({2, 0}, 0), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(row({2, 0}, 1), std::vector<int32_t>());
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor rows,
                            FromJagged(values, {0, 3, 7}, {3, 1}, 0));
  EXPECT_EQ(rows.values().num_elements(), 4);
}

TEST(JaggedTest, NoRowsAndNoElements) {
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor none,
                            FromJagged(Zeros({0, 3}), {0}, {}, 0));
  EXPECT_EQ(none.num_rows(), 0);
  RILL_ASSERT_OK_AND_ASSIGN(const Jagged jagged, ToJagged(none));
  EXPECT_EQ(jagged.values.num_elements(), 0);
  EXPECT_EQ(jagged.offsets.shape(), Shape({1}));
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor thin,
                            FromJagged(Zeros({5, 0}), {1, 2, 5}, {}, 0));
  EXPECT_EQ(thin.num_rows(), 2);
  EXPECT_EQ(thin.shapes().data<int64_t>()[2], 3);
}

TEST(JaggedTest, WhatDoesNotFitIsRefused) {
  const Tensor values = Counted({5, 2}, 0);
  EXPECT_THAT(FromJagged(values, {0, 6}, {}, 0), IsInvalidArgument("got 6"));
  EXPECT_THAT(FromJagged(values, {-1, 5}, {}, 0), IsInvalidArgument("got -1"));
  EXPECT_THAT(FromJagged(values, {0, 3, 2}, {}, 0),
              IsInvalidArgument("offset 2"));
  EXPECT_THAT(FromJagged(values, {0, 3}, {4}, 0),
              IsInvalidArgument("length 0"));
  EXPECT_THAT(FromJagged(values, {0, 3}, {-1}, 0),
              IsInvalidArgument("length 0"));
  RILL_ASSERT_OK_AND_ASSIGN(
      const RaggedTensor both,
      RaggedTensor::FromRows({Zeros({1, 2}), Zeros({2, 1})}));
  EXPECT_THAT(ToJagged(both), IsInvalidArgument("2 dimensions"));
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor scalars,
                            RaggedTensor::FromRows({Zeros({}), Zeros({})}));
  EXPECT_THAT(ToJagged(scalars), IsInvalidArgument("without dimensions"));
}

}  // namespace
}  // namespace rill::formats_internal
