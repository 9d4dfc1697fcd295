// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/frame_skip.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/rollout.h"
#include "rill/envs/step_mdp.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<Env>> SkipCartPole(int64_t lanes,
                                                  int64_t frame_skip) {
  RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = lanes}));
  return MakeFrameSkip(std::move(cart_pole), {.frame_skip = frame_skip});
}

absl::StatusOr<std::unique_ptr<Env>> SkipCounting(
    const CountingEnvOptions& options, int64_t frame_skip) {
  RILL_ASSIGN_OR_RETURN(auto counting, MakeCountingEnv(options));
  return MakeFrameSkip(std::move(counting), {.frame_skip = frame_skip});
}

TEST(FrameSkipTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto cart_pole, MakeCartPole({.lanes = 16}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeFrameSkip(std::move(cart_pole), {.frame_skip = 4}));
  EXPECT_EQ(env->name(), "CartPole-v1");
}

TEST(FrameSkipTest, SumsRewardsAndStopsWhereALaneIsDone) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      SkipCounting({.lanes = 3, .episode_steps = 3, .stagger_steps = 1}, 2));
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 1}));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(step.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(3, 3, 3)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, false, false)));
  RILL_ASSERT_OK(StepMdp(&step));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(3, 4, 4)));
  EXPECT_THAT(step.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(3, 7, 7)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(true, true, false)));

  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                    HasSubstr("lane 0")));
  RILL_ASSERT_OK(StepMdp(&step));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 0}));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(2, 2, 5)));
}

// Against a loop over the environment itself.
TEST(FrameSkipTest, ALanesFirstEpisodeIsThatOfTheEnvironment) {
  constexpr int64_t kSkip = 3;
  RILL_ASSERT_OK_AND_ASSIGN(auto skipping, SkipCartPole(4, kSkip));
  RILL_ASSERT_OK_AND_ASSIGN(auto plain, MakeCartPole({.lanes = 1}));
  TensorDict fast = skipping->step();
  const TensorDict& slow = plain->step();
  RILL_ASSERT_OK(skipping->Reset(std::vector<uint8_t>(4, 1)));
  RILL_ASSERT_OK(plain->Reset(std::vector<uint8_t>{1}));
  bool is_done = false;
  for (uint64_t t = 0; !is_done; ++t) {
    const int64_t push = Rng(1).UniformInt(t, 0, 2);
    for (int64_t lane = 0; lane < 4; ++lane) {
      fast.Find("action")->data<int64_t>()[lane] = push;
    }
    slow.Find("action")->data<int64_t>()[0] = push;
    float sum = 0;
    for (int64_t i = 0; i < kSkip && !is_done; ++i) {
      RILL_ASSERT_OK(plain->Step());
      sum += slow.Find("next/reward")->data<float>()[0];
      is_done = slow.Find("next/done")->data<bool>()[0];
    }
    RILL_ASSERT_OK(skipping->Step());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict lane, fast.Index(0));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, slow.Index(0));
    EXPECT_EQ(lane.Find("next/reward")->data<float>()[0], sum);
    for (const char* key : {"next/observation", "next/done"}) {
      EXPECT_THAT(lane.Find(key)->BitEquals(*want.Find(key)),
                  IsOkAndHolds(true))
          << key << " at " << t;
    }
    RILL_ASSERT_OK(StepMdp(&fast));
    // The other lanes end on their own.
    RILL_ASSERT_OK_AND_ASSIGN(const auto done, fast.Flat<bool>("done"));
    RILL_ASSERT_OK(
        skipping->Reset(std::vector<uint8_t>{0, done[1], done[2], done[3]}));
  }
}

// In the second step lane 0 is done at the first frame. The second frame, or
// the reset before it, fails.
TEST(FrameSkipTest, AFailureOnTheWayCutsOffTheLanesWhoseStepIsNotOver) {
  const FaultyEnv::Options faults[] = {
      {.fail_step = 3},
      {.fail_reset = 2},
      {.fail_step = 3, .status = absl::InvalidArgumentError("no map")}};
  for (const FaultyEnv::Options& fault : faults) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto counting,
        MakeCountingEnv({.lanes = 3, .episode_steps = 3, .stagger_steps = 1}));
    RILL_ASSERT_OK_AND_ASSIGN(
        auto env,
        MakeFrameSkip(std::make_unique<FaultyEnv>(std::move(counting), fault),
                      {.frame_skip = 2}));
    TensorDict step = env->step();
    const std::vector<uint8_t> all = {1, 1, 1};
    RILL_ASSERT_OK(env->Reset(all));
    RILL_ASSERT_OK(env->Step());
    RILL_ASSERT_OK(StepMdp(&step));
    // No promise that nothing has happened.
    EXPECT_THAT(env->Step(),
                StatusIs(absl::IsInvalidArgument(fault.status)
                             ? absl::StatusCode::kInternal
                             : absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("lanes 1, 2: "),
                               HasSubstr(fault.status.message()))));
    EXPECT_THAT(step.Flat<float>("next/observation"),
                IsOkAndHolds(ElementsAre(3, 2, 2)));
    EXPECT_THAT(step.Flat<float>("next/reward"),
                IsOkAndHolds(ElementsAre(3, 0, 0)));
    EXPECT_THAT(step.Flat<bool>("next/done"),
                IsOkAndHolds(ElementsAre(true, true, true)));
    EXPECT_THAT(step.Flat<bool>("next/truncated"),
                IsOkAndHolds(ElementsAre(false, true, true)));
    EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("lane 0")));
    RILL_ASSERT_OK(env->Reset(all));
    RILL_EXPECT_OK(env->Step());
  }
}

TEST(FrameSkipTest, BadOptionsAreNamed) {
  EXPECT_THAT(MakeFrameSkip(nullptr, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("env")));
  EXPECT_THAT(SkipCounting({}, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("frame_skip: got 0")));
}

TEST(FrameSkipTest, ALaneThatIsDoneIsSoAfterALoad) {
  const CountingEnvOptions counting = {.lanes = 2, .episode_steps = 1};
  RILL_ASSERT_OK_AND_ASSIGN(auto env, SkipCounting(counting, 2));
  RILL_ASSERT_OK_AND_ASSIGN(auto later, SkipCounting(counting, 2));
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  RILL_ASSERT_OK(later->LoadState(state));
  EXPECT_THAT(later->Step(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("FrameSkip"), HasSubstr("lane 1"))));
}

TEST(FrameSkipTest, StatesOfOthersAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, SkipCartPole(2, 3));
  RILL_ASSERT_OK_AND_ASSIGN(auto other, SkipCartPole(2, 4));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, other->SaveState());
  EXPECT_THAT(env->LoadState(state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("got 4"), HasSubstr("want 3"))));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict without, env->SaveState());
  RILL_ASSERT_OK(without.Delete("env"));
  EXPECT_THAT(
      env->LoadState(without),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("env/state")));
}

INSTANTIATE_TEST_SUITE_P(SkipCartPole, EnvConformanceTest,
                         ::testing::Values([] { return SkipCartPole(3, 4); }));
INSTANTIATE_TEST_SUITE_P(SkipCounting, EnvConformanceTest,
                         ::testing::Values([] {
                           return SkipCounting({.lanes = 3,
                                                .episode_steps = 1,
                                                .stagger_steps = 3,
                                                .ends_truncated = true},
                                               3);
                         }));

}  // namespace
}  // namespace rill
