// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/priority_reduction.h"

#include <cmath>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

std::vector<float> Reduced(const std::vector<float>& priorities,
                           PriorityReduction reduction, size_t items) {
  std::vector<float> reduced(items);
  RILL_EXPECT_OK(
      ReducePriorities(priorities, reduction, absl::MakeSpan(reduced)));
  return reduced;
}

TEST(PriorityReductionTest, Example) {
  float reduced[2];
  RILL_ASSERT_OK(ReducePriorities({1, 2, 6, 4, 4, 5}, PriorityReduction::kMax,
                                  absl::MakeSpan(reduced)));
  EXPECT_THAT(reduced, ElementsAre(6, 5));
}

TEST(PriorityReductionTest, P7_RowsOfAnItemBecomeOnePriority) {
  const std::vector<float> rows = {1, 2, 6, 4, 4, 5};
  EXPECT_THAT(Reduced(rows, PriorityReduction::kMax, 2), ElementsAre(6, 5));
  EXPECT_THAT(Reduced(rows, PriorityReduction::kMin, 2), ElementsAre(1, 4));
  EXPECT_THAT(Reduced(rows, PriorityReduction::kMean, 2),
              ElementsAre(3, FloatEq(13.0f / 3)));
  EXPECT_THAT(Reduced(rows, PriorityReduction::kMedian, 2), ElementsAre(2, 4));
}

TEST(PriorityReductionTest, MedianOfAnEvenNumberIsTheLowerOfTheMiddleTwo) {
  EXPECT_THAT(Reduced({9, 1, 5, 3}, PriorityReduction::kMedian, 1),
              ElementsAre(3));
  EXPECT_THAT(Reduced({9}, PriorityReduction::kMedian, 1), ElementsAre(9));
}

TEST(PriorityReductionTest, NanComesThrough) {
  for (const PriorityReduction reduction :
       {PriorityReduction::kMax, PriorityReduction::kMin,
        PriorityReduction::kMean, PriorityReduction::kMedian}) {
    const std::vector<float> reduced =
        Reduced({1, std::nanf(""), 2, 7, 7, 7}, reduction, 2);
    EXPECT_TRUE(std::isnan(reduced[0]));
    EXPECT_EQ(reduced[1], 7);
  }
}

TEST(PriorityReductionTest, NumbersMustDivide) {
  for (const size_t items : {0, 4, 7, 12}) {
    std::vector<float> reduced(items, -5);
    EXPECT_THAT(ReducePriorities({1, 2, 6, 4, 4, 5}, PriorityReduction::kMax,
                                 absl::MakeSpan(reduced)),
                IsInvalidArgument("got 6, want a multiple of the"));
    EXPECT_THAT(reduced, ::testing::Each(-5));
  }
  EXPECT_THAT(Reduced({}, PriorityReduction::kMax, 0), ElementsAre());
  float one;
  EXPECT_THAT(ReducePriorities({}, PriorityReduction::kMax, {&one, 1}),
              IsInvalidArgument());
}

}  // namespace
}  // namespace rill
