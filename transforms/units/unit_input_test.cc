// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/unit_input.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::transforms_internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two draws, three rows, one list of two rows.
SamplePlan MakePlan() {
  SamplePlan plan;
  plan.draws.resize(2);
  plan.rows = {4, 5, 9};
  plan.segments = {0, 0, 1};
  plan.context.resize(1);
  plan.context[0].rows = {7, 8};
  plan.context[0].segments = {1, 1};
  return plan;
}

absl::Status Check(const SamplePlan& plan, int64_t rows, int64_t context,
                   int64_t batch) {
  const std::vector<TensorDict> lists = {TensorDict({context})};
  return CheckInput("Unit::Apply", plan, 1, TensorDict({rows}), lists,
                    TensorDict({batch}));
}

TEST(UnitInputTest, PlanAndDictionariesMustBeOfTheSameRows) {
  const SamplePlan plan = MakePlan();
  RILL_EXPECT_OK(Check(plan, 3, 2, 3));
  // Rows behind those of a list of context are nobody's.
  RILL_EXPECT_OK(Check(plan, 3, 7, 3));
  EXPECT_THAT(Check(plan, 4, 2, 3),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("Unit::Apply: rows"), HasSubstr("[4]"),
                             HasSubstr("want [3]"))));
  EXPECT_THAT(Check(plan, 3, 1, 3),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("context[0]")));
  EXPECT_THAT(Check(plan, 3, 2, 2),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("batch")));
}

TEST(UnitInputTest, ListsOfAPlanMustBeWhole) {
  SamplePlan plan = MakePlan();
  plan.segments = {0, 1, 0};
  EXPECT_THAT(Check(plan, 3, 2, 3),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("ascending")));
  plan = MakePlan();
  plan.context[0].segments[1] = 2;
  EXPECT_THAT(Check(plan, 3, 2, 3),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("context[0]: got 2 rows, 2 segments and 0 "
                                 "mask values over 2 draws")));
  plan = MakePlan();
  plan.mask = {1, 0};
  EXPECT_THAT(Check(plan, 3, 2, 3),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("2 mask")));
}

TEST(UnitInputTest, EmptyRowsMeanOneADraw) {
  SamplePlan plan;
  plan.draws.resize(3);
  EXPECT_EQ(NumRows(plan), 3);
  EXPECT_EQ(DrawOf(plan, 2), 2);
  RILL_EXPECT_OK(CheckOneRowADraw("Unit::Apply", plan));
  plan = MakePlan();
  EXPECT_EQ(NumRows(plan), 3);
  EXPECT_EQ(DrawOf(plan, 2), 1);
  EXPECT_THAT(CheckOneRowADraw("Unit::Apply", plan),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("got 3 rows")));
}

TEST(UnitInputTest, NewLeavesAreChecked) {
  TensorDictSpec rows;
  RILL_ASSERT_OK(rows.Set("next/done", LeafSpec::Binary({1})));
  RILL_ASSERT_OK(rows.Set("flat", LeafSpec::Binary({})));
  RILL_EXPECT_OK(CheckIsNew("F", "none", rows));
  EXPECT_THAT(CheckIsNew("F", "flat", rows),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("flat")));
  EXPECT_TRUE(IsNext("next/done"));
  EXPECT_FALSE(IsNext("nextdone"));
}

}  // namespace
}  // namespace rill::transforms_internal
