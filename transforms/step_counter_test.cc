// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/step_counter.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TransformUnderTest UnderTest(const StepCounter::Options& options) {
  return {.make = [options] { return *StepCounter::Create(options); },
          .batch_spec = TedSpec(),
          .step_spec = TedSpec()};
}

// A step of two lanes with these flags below next.
TensorDict StepOf(const std::vector<int64_t>& counts, bool done,
                  bool truncated) {
  TensorDict step({2});
  RILL_EXPECT_OK(
      step.Set("step_count", *Tensor::From<int64_t>(counts, {2, 1})));
  const bool dones[] = {done, done};
  const bool truncateds[] = {truncated, truncated};
  RILL_EXPECT_OK(step.Set("next/done", *Tensor::From<bool>(dones, {2, 1})));
  RILL_EXPECT_OK(
      step.Set("next/truncated", *Tensor::From<bool>(truncateds, {2, 1})));
  return step;
}

TEST(StepCounterTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 500}));
  EXPECT_EQ(counter->name(), "StepCounter");
}

TEST(StepCounterTest, CountsStepsOfEachLaneFromItsReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter, StepCounter::Create({}));
  FakeEnvironment environment(TedSpec(), 2, /*seed=*/1);
  RILL_ASSERT_OK(environment.Reset({1, 1}, *counter));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step, environment.Step(*counter));
  EXPECT_THAT(step.Flat<int64_t>("step_count"),
              IsOkAndHolds(ElementsAre(0, 0)));
  EXPECT_THAT(step.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(1, 1)));
  RILL_ASSERT_OK(environment.Step(*counter));
  RILL_ASSERT_OK(environment.Reset({0, 1}, *counter));
  RILL_ASSERT_OK_AND_ASSIGN(step, environment.Step(*counter));
  EXPECT_THAT(step.Flat<int64_t>("step_count"),
              IsOkAndHolds(ElementsAre(2, 0)));
  EXPECT_THAT(step.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(3, 1)));
}

TEST(StepCounterTest, MaxStepsTruncatesAndIsDone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  TensorDict step = StepOf({1, 2}, /*done=*/false, /*truncated=*/false);
  RILL_ASSERT_OK(counter->OnStep(&step));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, true)));
}

TEST(StepCounterTest, FlagsOfTheEnvironmentStay) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  TensorDict step = StepOf({0, 7}, /*done=*/true, /*truncated=*/true);
  RILL_ASSERT_OK(counter->OnStep(&step));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(true, true)));
}

TEST(StepCounterTest, DoneStaysWhereItIsNotToBeUpdated) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto counter,
      StepCounter::Create({.max_steps = 1, .update_done = false}));
  TensorDict step = StepOf({0, 0}, /*done=*/false, /*truncated=*/false);
  RILL_ASSERT_OK(counter->OnStep(&step));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, false)));
}

TEST(StepCounterTest, TheLargestCountStays) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  TensorDict step = StepOf({INT64_MAX, INT64_MIN}, false, false);
  RILL_ASSERT_OK(counter->OnStep(&step));
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

TEST(StepCounterTest, StepWithoutAResetIsNotFound) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter, StepCounter::Create({}));
  TensorDict step({2});
  EXPECT_THAT(counter->OnStep(&step),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("StepCounter::OnStep"),
                             HasSubstr("step_count"))));
}

TEST(StepCounterTest, FlagsOfAnotherShapeAreRefusedNamingBoth) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  TensorDict step = StepOf({0, 0}, false, false);
  RILL_ASSERT_OK(step.Set("next/done", *Tensor::Zeros(DType::kBool, {2})));
  EXPECT_THAT(counter->OnStep(&step),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("bool[2]"), HasSubstr("bool[2, 1]"))));
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(spec.Set("next/done", LeafSpec::Binary({})));
  EXPECT_THAT(counter->StepSpec(spec),
              StatusIs(kInvalidArgument, HasSubstr("next/done")));
  spec.Erase("next/done");
  EXPECT_THAT(counter->StepSpec(spec), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Counting, UnderTest({}));
INSTANTIATE_TRANSFORM_CONFORMANCE(Truncating, UnderTest({.max_steps = 2}));

}  // namespace rill
