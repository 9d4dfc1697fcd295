// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/shape.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ShapeTest, DefaultIsRankZeroWithOneElement) {
  const Shape shape;
  EXPECT_EQ(shape.rank(), 0);
  EXPECT_EQ(shape.num_elements(), 1);
  EXPECT_EQ(shape.ToString(), "[]");
}

TEST(ShapeTest, LiteralKeepsSizes) {
  const Shape shape = {3, 4, 5};
  EXPECT_THAT(shape.sizes(), ElementsAre(3, 4, 5));
  EXPECT_EQ(shape[1], 4);
  EXPECT_EQ(shape.num_elements(), 60);
  EXPECT_EQ(shape.ToString(), "[3, 4, 5]");
}

TEST(ShapeTest, LiteralIsCutToItsLimits) {
  EXPECT_EQ(Shape({1, 2, 3, 4, 5, 6, 7, 8, 9}),
            Shape({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(Shape({-1, 2}), Shape({0, 2}));
}

TEST(ShapeTest, CreateChecksRankSignAndProduct) {
  EXPECT_THAT(Shape::Create({2, 3}), IsOkAndHolds(Shape({2, 3})));
  EXPECT_THAT(Shape::Create(std::vector<int64_t>(9, 1)),
              IsInvalidArgument("got 9, want at most 8"));
  EXPECT_THAT(Shape::Create({2, -3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("[2, -3]"), HasSubstr("want >= 0"))));
  EXPECT_THAT(Shape::Create({kMax, 1}), IsOk());
  EXPECT_THAT(Shape::Create({kMax, 2}),
              IsInvalidArgument("does not fit in int64"));
}

TEST(ShapeTest, CreateRefusesOverflowBehindAZero) {
  EXPECT_THAT(Shape::Create({0, kMax, kMax}), IsInvalidArgument());
  EXPECT_THAT(Shape::Create({0, kMax}), IsOk());
}

TEST(ShapeTest, ElementsOfATooLargeLiteralSaturate) {
  EXPECT_EQ(Shape({kMax, kMax}).num_elements(), kMax);
  EXPECT_EQ(Shape({kMax, kMax, 0}).num_elements(), 0);
}

TEST(ShapeTest, PrefixSuffixConcat) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.Prefix(2), Shape({2, 3}));
  EXPECT_EQ(shape.Suffix(1), Shape({3, 4}));
  EXPECT_EQ(shape.Prefix(0), Shape());
  EXPECT_EQ(shape.Suffix(3), Shape());
  EXPECT_EQ(shape.Prefix(1).Concat(shape.Suffix(1)), shape);
  EXPECT_EQ(Shape({1, 1, 1, 1, 1}).Concat({2, 2, 2, 2, 2}),
            Shape({1, 1, 1, 1, 1, 2, 2, 2}));
}

TEST(ShapeTest, StartsWith) {
  EXPECT_TRUE(Shape({2, 3}).StartsWith({2}));
  EXPECT_TRUE(Shape({2, 3}).StartsWith({}));
  EXPECT_TRUE(Shape({2, 3}).StartsWith({2, 3}));
  EXPECT_FALSE(Shape({2, 3}).StartsWith({3}));
  EXPECT_FALSE(Shape({2, 3}).StartsWith({2, 3, 1}));
}

TEST(ShapeTest, EqualityLooksAtSizesOnly) {
  EXPECT_EQ(Shape({2, 3}).Prefix(1), Shape({2}));
  EXPECT_FALSE(Shape({2}) == Shape({2, 1}));
}

}  // namespace
}  // namespace rill
