// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/schedule.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(ScheduleTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto selector, PrioritizedSelector::Create());
  RILL_ASSERT_OK_AND_ASSIGN(const Schedule beta,
                            LinearSchedule(0.4, 1.0, 1000));
  RILL_ASSERT_OK(selector->SetBeta(beta(500)));
  EXPECT_DOUBLE_EQ(selector->beta(), 0.7);
}

TEST(ScheduleTest, LinearGoesStraightAndStays) {
  RILL_ASSERT_OK_AND_ASSIGN(const Schedule down, LinearSchedule(1, 0.2, 4));
  EXPECT_EQ(down(-3), 1);
  EXPECT_EQ(down(0), 1);
  EXPECT_DOUBLE_EQ(down(1), 0.8);
  EXPECT_DOUBLE_EQ(down(3), 0.4);
  EXPECT_EQ(down(4), 0.2);
  EXPECT_EQ(down(1'000'000'000'000), 0.2);
}

TEST(ScheduleTest, StepsChangeEverySoManySteps) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const Schedule halves,
      StepSchedule({.first = 8, .factor = 0.5, .every = 10, .min = 1.5}));
  EXPECT_EQ(halves(0), 8);
  EXPECT_EQ(halves(9), 8);
  EXPECT_EQ(halves(10), 4);
  EXPECT_EQ(halves(29), 2);
  EXPECT_EQ(halves(30), 1.5);
  RILL_ASSERT_OK_AND_ASSIGN(
      const Schedule rises,
      StepSchedule({.first = 0.4, .summand = 0.25, .every = 2, .max = 1}));
  EXPECT_EQ(rises(-1), 0.4);
  EXPECT_EQ(rises(-5), 0.4);
  EXPECT_DOUBLE_EQ(rises(2), 0.65);
  EXPECT_EQ(rises(6), 1);
}

TEST(ScheduleTest, BitsAreTheSameOnEveryMachine) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const Schedule steps,
      StepSchedule({.first = 0.4, .factor = 0.997, .summand = -0.001}));
  EXPECT_EQ(steps(1), 0x1.9758e219652bep-2);
  EXPECT_EQ(steps(7), 0x1.89e84d3bbbac6p-2);
  EXPECT_EQ(steps(100), 0x1.91ce012c904c9p-3);
  EXPECT_EQ(steps(1001), -0x1.f66455ab1ba88p-1);
  RILL_ASSERT_OK_AND_ASSIGN(const Schedule line, LinearSchedule(0.4, 1.1, 7));
  EXPECT_EQ(line(1), 0x1.0000000000000p-1);
  EXPECT_EQ(line(2), 0x1.3333333333334p-1);
  EXPECT_EQ(line(5), 0x1.ccccccccccccep-1);
}

TEST(ScheduleTest, BadOptionsAreRefused) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(LinearSchedule(bad, 1, 1), IsInvalidArgument());
    EXPECT_THAT(LinearSchedule(1, bad, 1), IsInvalidArgument());
    EXPECT_THAT(StepSchedule({.first = bad}), IsInvalidArgument());
    EXPECT_THAT(StepSchedule({.factor = bad}), IsInvalidArgument());
    EXPECT_THAT(StepSchedule({.summand = bad}), IsInvalidArgument());
  }
  EXPECT_THAT(LinearSchedule(0, 1, 0), IsInvalidArgument());
  EXPECT_THAT(StepSchedule({.factor = -1}), IsInvalidArgument());
  EXPECT_THAT(StepSchedule({.every = 0}), IsInvalidArgument());
  EXPECT_THAT(StepSchedule({.min = 2, .max = 1}), IsInvalidArgument());
  EXPECT_THAT(StepSchedule({.min = std::nan("")}), IsInvalidArgument());
}

TEST(ScheduleTest, NothingThatOverflowsIsNotANumber) {
  RILL_ASSERT_OK_AND_ASSIGN(const Schedule step, StepSchedule({.first = 0,
                                                               .factor = 2,
                                                               .summand = 1,
                                                               .every = 1,
                                                               .min = 0,
                                                               .max = 50}));
  EXPECT_EQ(step(2000), 50);
  // The product and what is added are infinite, the product for more steps.
  for (const double first : {1.0, -1.0}) {
    RILL_ASSERT_OK_AND_ASSIGN(const Schedule odd,
                              StepSchedule({.first = first,
                                            .factor = 2,
                                            .summand = first * -1e308,
                                            .every = 1,
                                            .min = -3,
                                            .max = 5}));
    EXPECT_EQ(odd(2000), first > 0 ? 5 : -3);
  }
  RILL_ASSERT_OK_AND_ASSIGN(const Schedule line,
                            LinearSchedule(-1e308, 1e308, 4));
  EXPECT_EQ(line(0), -1e308);
  EXPECT_EQ(line(2), 0);
}

}  // namespace
}  // namespace rill
