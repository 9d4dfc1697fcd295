// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/step_counter.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

StepTransformUnderTest UnderTest(const StepCounter::Options& options) {
  return {.make = [options] { return *StepCounter::Create(options); },
          .step_spec = TedSpec()};
}

// The step of an environment of two lanes where these flags are below next.
TensorDict Flags(bool done, bool truncated) {
  TensorDict made({2});
  RILL_EXPECT_OK(
      made.Set("next/done", *Tensor::From<bool>({done, done}, {2, 1})));
  RILL_EXPECT_OK(made.Set("next/truncated",
                          *Tensor::From<bool>({truncated, truncated}, {2, 1})));
  return made;
}

// A step after these counts.
TensorDict StepAfter(const StepTransform& counter,
                     const std::vector<int64_t>& counts,
                     const TensorDict& made) {
  auto environment =
      FakeEnvironment::Create(TedSpec(), 2, /*seed=*/1, &counter);
  RILL_EXPECT_OK(environment);
  RILL_EXPECT_OK(environment->Reset({1, 1}));
  std::copy(counts.begin(), counts.end(),
            environment->step().Find("step_count")->data<int64_t>());
  RILL_EXPECT_OK(environment->Step(made));
  return environment->step();
}

TEST(StepCounterTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 500}));
  EXPECT_EQ(counter->name(), "StepCounter");
}

TEST(StepCounterTest, TheLimitIsListed) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 500}));
  const auto values = counter->option_values();
  EXPECT_EQ(values.values()[0].name, "max_steps");
  EXPECT_EQ(values.values()[0].text, "500");
}

TEST(StepCounterTest, CountsStepsOfEachLaneFromItsReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter, StepCounter::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment,
      FakeEnvironment::Create(TedSpec(), 2, /*seed=*/1, counter.get()));
  const TensorDict& step = environment.step();
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  RILL_ASSERT_OK(environment.Step());
  EXPECT_THAT(step.Flat<int64_t>("step_count"),
              IsOkAndHolds(ElementsAre(0, 0)));
  EXPECT_THAT(step.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(1, 1)));
  RILL_ASSERT_OK(environment.Step());
  RILL_ASSERT_OK(environment.Reset({0, 1}));
  RILL_ASSERT_OK(environment.Step());
  EXPECT_THAT(step.Flat<int64_t>("step_count"),
              IsOkAndHolds(ElementsAre(2, 0)));
  EXPECT_THAT(step.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(3, 1)));
}

TEST(StepCounterTest, MaxStepsTruncatesAndIsDone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  const TensorDict step = StepAfter(*counter, {1, 2}, Flags(false, false));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, true)));
}

// More lanes than are counted at once, and some beside them.
TEST(StepCounterTest, EachOfManyLanesIsCountedAndTruncated) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 30}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment,
      FakeEnvironment::Create(TedSpec(), 19, /*seed=*/1, counter.get()));
  TensorDict made({19});
  for (const char* flag : {"next/done", "next/truncated"}) {
    RILL_ASSERT_OK(made.Set(flag, *Tensor::Zeros(DType::kBool, {19, 1})));
  }
  for (int64_t limit_at = 0; limit_at < 19; ++limit_at) {
    RILL_ASSERT_OK(environment.Reset(std::vector<uint8_t>(19, 1)));
    int64_t* const counts =
        environment.step().Find("step_count")->data<int64_t>();
    for (int64_t i = 0; i < 19; ++i) counts[i] = i;
    counts[limit_at] = 29;
    RILL_ASSERT_OK(environment.Step(made));
    const TensorDict& step = environment.step();
    for (int64_t i = 0; i < 19; ++i) {
      EXPECT_EQ(step.Find("next/step_count")->data<int64_t>()[i],
                i == limit_at ? 30 : i + 1);
      for (const char* flag : {"next/done", "next/truncated"}) {
        EXPECT_EQ(step.Find(flag)->data<bool>()[i], i == limit_at) << flag;
      }
    }
  }
}

TEST(StepCounterTest, FlagsOfTheEnvironmentStay) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  const TensorDict step = StepAfter(*counter, {0, 7}, Flags(true, true));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(true, true)));
}

TEST(StepCounterTest, DoneStaysWhereItIsNotToBeUpdated) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto counter,
      StepCounter::Create({.max_steps = 1, .update_done = false}));
  const TensorDict step = StepAfter(*counter, {0, 0}, Flags(false, false));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, false)));
}

TEST(StepCounterTest, TheLargestCountStays) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  const TensorDict step =
      StepAfter(*counter, {INT64_MAX, INT64_MIN}, Flags(false, false));
  EXPECT_THAT(step.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(INT64_MAX, INT64_MIN + 1)));
}

TEST(StepCounterTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(StepCounter::Create({.max_steps = 0}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("max_steps"), HasSubstr("got 0"))));
  EXPECT_THAT(StepCounter::Create({.step_count_key = "a//b"}),
              StatusIs(kInvalidArgument, HasSubstr("step_count_key")));
}

TEST(StepCounterTest, AKeyThatTheStepsHaveIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto counter, StepCounter::Create({.step_count_key = "observation"}));
  EXPECT_THAT(counter->PlanSteps(TedSpec()).status(),
              StatusIs(kInvalidArgument, HasSubstr("\"observation\"")));
}

TEST(StepCounterTest, FlagsOfAnotherShapeAreRefusedNamingBoth) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(spec.Set("next/done", LeafSpec::Binary({})));
  EXPECT_THAT(counter->PlanSteps(spec).status(),
              StatusIs(kInvalidArgument, AllOf(HasSubstr("next/done"),
                                               HasSubstr("want bool[1]"))));
  spec.Erase("next/done");
  EXPECT_THAT(counter->PlanSteps(spec).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(Counting, UnderTest({}));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(Truncating, UnderTest({.max_steps = 2}));

}  // namespace rill
