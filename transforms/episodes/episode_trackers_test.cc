// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/episode_trackers.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/episodes/target_return.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

FakeEnvironment ThreeLanes(const StepTransform& transform) {
  auto environment = FakeEnvironment::Create(TedSpec(), 3, &transform);
  RILL_EXPECT_OK(environment);
  RILL_EXPECT_OK(environment->Reset({1, 1, 1}));
  return *std::move(environment);
}

TEST(EpisodeTrackersTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto tracker, InitTracker::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto counter, TrajCounter::Create({}));
  EXPECT_EQ(tracker->name(), "InitTracker");
  EXPECT_EQ(counter->name(), "TrajCounter");
}

TEST(EpisodeTrackersTest, IsInitIsTrueFromAResetToTheNextStep) {
  RILL_ASSERT_OK_AND_ASSIGN(auto tracker, InitTracker::Create({}));
  FakeEnvironment environment = ThreeLanes(*tracker);
  const TensorDict& step = environment.step();
  EXPECT_THAT(step.Flat<bool>("is_init"),
              IsOkAndHolds(ElementsAre(true, true, true)));
  RILL_ASSERT_OK(environment.Step());
  EXPECT_THAT(step.Flat<bool>("is_init"),
              IsOkAndHolds(ElementsAre(true, true, true)));
  EXPECT_THAT(step.Flat<bool>("next/is_init"),
              IsOkAndHolds(ElementsAre(false, false, false)));
  RILL_ASSERT_OK(environment.Reset({0, 1, 0}));
  EXPECT_THAT(step.Flat<bool>("is_init"),
              IsOkAndHolds(ElementsAre(false, true, false)));
}

TEST(EpisodeTrackersTest, TrajectoriesHaveNumbersThatNeverComeAgain) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter, TrajCounter::Create({}));
  FakeEnvironment environment = ThreeLanes(*counter);
  const TensorDict& step = environment.step();
  EXPECT_THAT(step.Flat<int64_t>("traj_count"),
              IsOkAndHolds(ElementsAre(0, 1, 2)));
  RILL_ASSERT_OK(environment.Step());
  RILL_ASSERT_OK(environment.Reset({0, 1, 0}));
  RILL_ASSERT_OK(environment.Step());
  EXPECT_THAT(step.Flat<int64_t>("traj_count"),
              IsOkAndHolds(ElementsAre(0, 3, 2)));
  EXPECT_THAT(step.Flat<int64_t>("next/traj_count"),
              IsOkAndHolds(ElementsAre(0, 3, 2)));
  RILL_ASSERT_OK(environment.Reset({1, 0, 1}));
  EXPECT_THAT(step.Flat<int64_t>("traj_count"),
              IsOkAndHolds(ElementsAre(4, 3, 5)));
  EXPECT_THAT(environment.state().Flat<int64_t>("traj_count"),
              IsOkAndHolds(ElementsAre(6)));
}

TEST(EpisodeTrackersTest, AKeyThatTheStepsHaveIsRefused) {
  const std::string key = "observation";
  for (const auto& tracker : {InitTracker::Create({.init_key = key}),
                              TrajCounter::Create({.out_key = key}),
                              TargetReturn::Create({.out_keys = {key}})}) {
    RILL_ASSERT_OK(tracker);
    EXPECT_THAT((*tracker)->PlanSteps(TedSpec()).status(),
                StatusIs(kInvalidArgument, HasSubstr("\"observation\"")));
  }
}

TEST(EpisodeTrackersTest, BadKeysAreNamed) {
  EXPECT_THAT(InitTracker::Create({.init_key = ""}),
              StatusIs(kInvalidArgument, HasSubstr("init_key")));
  EXPECT_THAT(TrajCounter::Create({.out_key = "a//b"}),
              StatusIs(kInvalidArgument, HasSubstr("out_key")));
}

// --- Target returns ----------------------------------------------------------

TensorDict Rewards(float a, float b, float c) {
  TensorDict made({3});
  RILL_EXPECT_OK(
      made.Set("next/reward", *Tensor::From<float>({a, b, c}, {3, 1})));
  return made;
}

TEST(TargetReturnTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto target,
                            TargetReturn::Create({.target_return = 200}));
  EXPECT_EQ(target->name(), "TargetReturn");
}

TEST(TargetReturnTest, RewardsAreTakenOffUntilAReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto target,
                            TargetReturn::Create({.target_return = 10}));
  FakeEnvironment environment = ThreeLanes(*target);
  const TensorDict& step = environment.step();
  EXPECT_THAT(step.Flat<float>("target_return"),
              IsOkAndHolds(ElementsAre(10, 10, 10)));
  RILL_ASSERT_OK(environment.Step(Rewards(1, 2, 3)));
  EXPECT_THAT(step.Flat<float>("next/target_return"),
              IsOkAndHolds(ElementsAre(9, 8, 7)));
  RILL_ASSERT_OK(environment.Reset({0, 0, 1}));
  RILL_ASSERT_OK(environment.Step(Rewards(1, 1, 1)));
  EXPECT_THAT(step.Flat<float>("target_return"),
              IsOkAndHolds(ElementsAre(9, 8, 10)));
  EXPECT_THAT(step.Flat<float>("next/target_return"),
              IsOkAndHolds(ElementsAre(8, 7, 9)));
}

TEST(TargetReturnTest, AConstantOneStays) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto target,
      TargetReturn::Create(
          {.target_return = 10, .mode = TargetReturn::Mode::kConstant}));
  FakeEnvironment environment = ThreeLanes(*target);
  RILL_ASSERT_OK(environment.Step(Rewards(1, 2, 3)));
  EXPECT_THAT(environment.step().Flat<float>("next/target_return"),
              IsOkAndHolds(ElementsAre(10, 10, 10)));
}

TEST(TargetReturnTest, BadOptionsAndStepsAreNamed) {
  EXPECT_THAT(TargetReturn::Create({.target_return = NAN}),
              StatusIs(kInvalidArgument, HasSubstr("target_return: got nan")));
  EXPECT_THAT(TargetReturn::Create({.in_keys = {}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(TargetReturn::Create({.in_keys = {"reward"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"reward\"")));
  EXPECT_THAT(TargetReturn::Create({.out_keys = {"next/target"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"next/target\"")));
  RILL_ASSERT_OK_AND_ASSIGN(auto flags,
                            TargetReturn::Create({.in_keys = {"next/done"}}));
  EXPECT_THAT(flags->PlanSteps(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("\"next/done\"")));
  RILL_ASSERT_OK_AND_ASSIGN(auto missing,
                            TargetReturn::Create({.in_keys = {"next/cost"}}));
  EXPECT_THAT(
      missing->PlanSteps(TedSpec()),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"next/cost\"")));
}

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    InitTracker, BesideAnEnvironment<InitTracker>({}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    TrajCounter, BesideAnEnvironment<TrajCounter>({}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    TargetReturn,
    BesideAnEnvironment<TargetReturn>({.target_return = 3}, TedSpec()));

}  // namespace
}  // namespace rill
