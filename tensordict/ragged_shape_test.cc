// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ragged_shape.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// [3, -1, 2]
RaggedShape Episodes() {
  return RaggedShape(Shape({4, 2})).MergedWith(Shape({1, 2})).WithDim(0, 3);
}

TEST(RaggedShapeTest, SizesThatDifferAreMinusOne) {
  EXPECT_THAT(Episodes().sizes(), ElementsAre(3, -1, 2));
  EXPECT_EQ(Episodes().ToString(), "[3, -1, 2]");
  EXPECT_TRUE(Episodes().is_ragged());
  // A dimension that differed once stays ragged.
  EXPECT_EQ(Episodes().MergedWith(Shape({3, 4, 2})), Episodes());
  EXPECT_FALSE(Episodes() == RaggedShape(Shape({3, 4, 2})));
}

TEST(RaggedShapeTest, DimensionsGoInAnywhere) {
  const RaggedShape shape = Shape({5, 7});
  EXPECT_EQ(shape.WithDim(0, 2), RaggedShape(Shape({2, 5, 7})));
  EXPECT_EQ(shape.WithDim(1, 2), RaggedShape(Shape({5, 2, 7})));
  EXPECT_EQ(shape.WithDim(2, 2), RaggedShape(Shape({5, 7, 2})));
}

TEST(RaggedShapeTest, OnlyAnEvenOneIsAShape) {
  EXPECT_THAT(RaggedShape(Shape({2, 0})).ToShape(),
              IsOkAndHolds(Shape({2, 0})));
  EXPECT_THAT(Episodes().ToShape(), IsInvalidArgument("got [3, -1, 2], want"));
}

TEST(RaggedShapeTest, RaggedDimensionEqualsNoSize) {
  EXPECT_TRUE(Episodes().StartsWith(Shape({3})));
  EXPECT_TRUE(Episodes().StartsWith(Shape()));
  EXPECT_FALSE(Episodes().StartsWith(Shape({3, 4})));
  EXPECT_FALSE(Episodes().StartsWith(Shape({3, 4, 2, 1})));
  EXPECT_FALSE(Episodes().IsPrefixOf(Shape({3, 4, 2, 1})));
  EXPECT_TRUE(RaggedShape(Shape({3})).IsPrefixOf(Shape({3, 4})));
  EXPECT_FALSE(RaggedShape(Shape({3})).IsPrefixOf(Shape()));
}

}  // namespace
}  // namespace rill
