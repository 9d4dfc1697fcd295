// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/noop_reset.h"

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/rollout.h"
#include "rill/envs/step_mdp.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/transformed_env.h"
#include "rill/envs/wrappers/frame_skip.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/actions/discrete_action_projection.h"
#include "rill/transforms/env/timer.h"
#include "rill/transforms/episodes/vec_norm.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;

absl::StatusOr<std::unique_ptr<Env>> NoopCounting(
    const CountingEnvOptions& counting, const NoopResetOptions& options) {
  RILL_ASSIGN_OR_RETURN(auto env, MakeCountingEnv(counting));
  return MakeNoopReset(std::move(env), options);
}

absl::StatusOr<std::unique_ptr<Env>> NoopCartPole(
    int64_t lanes, const NoopResetOptions& options) {
  RILL_ASSIGN_OR_RETURN(auto env, MakeCartPole({.lanes = lanes}));
  return MakeNoopReset(std::move(env), options);
}

TEST(NoopResetTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto cart_pole, MakeCartPole({.lanes = 16}));
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeNoopReset(std::move(cart_pole), {.noops = 5}));
  EXPECT_EQ(env->name(), "CartPole-v1");
}

TEST(NoopResetTest, ALaneStepsAndTheOthersStay) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            NoopCounting({.lanes = 3, .episode_steps = 100},
                                         {.noops = 5, .random = false}));
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 1}));
  EXPECT_THAT(step.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(5, 5, 5)));
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(env->Step());
    RILL_ASSERT_OK(StepMdp(&step));
  }
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1, 0}));
  EXPECT_THAT(step.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(7, 5, 7)));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(8, 6, 8)));
}

TEST(NoopResetTest, ALaneThatWasNeverResetStaysSo) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            NoopCounting({.lanes = 2, .episode_steps = 100},
                                         {.noops = 5, .random = false}));
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 0}));
  EXPECT_THAT(env->Step(), StatusIs(kFailed, HasSubstr("lane 1")));
}

TEST(NoopResetTest, TheNumberIsUniformUpToNoopsAndTheSeeds) {
  constexpr int64_t kLanes = 100;
  const auto begin = [](uint64_t seed, bool seeds_later) {
    auto env = *NoopCounting({.lanes = kLanes, .episode_steps = 100},
                             {.noops = 3, .seed = seeds_later ? 99 : seed});
    if (seeds_later) {
      RILL_EXPECT_OK(env->Seed(seed));
    }
    const TensorDict& step = env->step();
    RILL_EXPECT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
    const auto numbers = *step.Flat<float>("observation");
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  const std::vector<float> numbers = begin(1, false);
  EXPECT_EQ(std::set<float>(numbers.begin(), numbers.end()),
            std::set<float>({0, 1, 2, 3}));
  EXPECT_EQ(begin(1, true), numbers);
  EXPECT_NE(begin(2, true), numbers);
}

TEST(NoopResetTest, EpisodesThatEndMeanwhileBeginAgain) {
  // Random actions end half of the episodes before 20 steps.
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            NoopCartPole(64, {.noops = 18, .random = false}));
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(64, 1)));
  EXPECT_THAT(step.Flat<bool>("done"), IsOkAndHolds(Each(false)));
  RILL_EXPECT_OK(env->Step());
}

TEST(NoopResetTest, EpisodesThatAlwaysEndAreAnError) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            NoopCounting({.lanes = 2, .episode_steps = 3},
                                         {.noops = 3, .random = false}));
  TensorDict step = env->step();
  EXPECT_THAT(env->Reset(std::vector<uint8_t>{0, 1}),
              StatusIs(kFailed, AllOf(HasSubstr("lane 1"),
                                      HasSubstr("make noops smaller"))));
}

TEST(NoopResetTest, AnActionOfItsOwnIsTaken) {
  const auto action_at_reset = [](int64_t push) {
    auto env = *NoopCartPole(
        2, {.noops = 3,
            .random = false,
            .noop_action = *Tensor::From<int64_t>({push}, Shape({}))});
    const TensorDict& step = env->step();
    RILL_EXPECT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
    return step.Find("observation")->data<float>()[1];  // Its speed.
  };
  EXPECT_LT(action_at_reset(0), -0.4f);
  EXPECT_GT(action_at_reset(1), 0.4f);
}

TEST(NoopResetTest, BadOptionsAreNamed) {
  EXPECT_THAT(MakeNoopReset(nullptr, {}).status(),
              StatusIs(kInvalid, HasSubstr("env")));
  EXPECT_THAT(NoopCounting({}, {.noops = -1}).status(),
              StatusIs(kInvalid, HasSubstr("noops: got -1")));
  EXPECT_THAT(
      NoopCounting({}, {.noop_action = *Tensor::From<int64_t>({3}, Shape({}))})
          .status(),
      StatusIs(kInvalid, HasSubstr("noop_action")));
}

TEST(NoopResetTest, SeveralLanesWantAStateThatIsSaved) {
  EXPECT_THAT(NoopCounting({.lanes = 2, .can_save = false}, {}).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("2 lanes")));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, NoopCounting({.episode_steps = 9, .can_save = false},
                             {.noops = 4, .random = false}));
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  EXPECT_THAT(step.Flat<float>("observation"), IsOkAndHolds(ElementsAre(4)));
}

// The times of a Timer are those of all lanes.
TEST(NoopResetTest, AStateThatIsNotByLanesIsNamed) {
  TransformedEnv::Transforms transforms;
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(), Timer::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto counting,
                            MakeCountingEnv({.lanes = 3, .episode_steps = 9}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto timed,
      TransformedEnv::Create(std::move(counting), std::move(transforms)));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeNoopReset(std::move(timed), {.noops = 2, .random = false}));
  TensorDict step = env->step();
  EXPECT_THAT(env->Reset(std::vector<uint8_t>{1, 1, 1}),
              StatusIs(kFailed, HasSubstr("times")));
}

// With three lanes the state of a VecNorm of one element has three numbers.
TEST(NoopResetTest, AStateThatIsOfTheSizeOfTheLanesByChanceIsNamed) {
  TransformedEnv::Transforms transforms;
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(),
                            VecNorm::Create({.shapes = {{1}}}));
  RILL_ASSERT_OK_AND_ASSIGN(auto counting,
                            MakeCountingEnv({.lanes = 3, .episode_steps = 9}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto normal,
      TransformedEnv::Create(std::move(counting), std::move(transforms)));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeNoopReset(std::move(normal), {.noops = 2, .random = false}));
  TensorDict step = env->step();
  EXPECT_THAT(env->Reset(std::vector<uint8_t>{1, 1, 1}),
              StatusIs(kFailed, HasSubstr("observation")));
}

TEST(NoopResetTest, AStateThatWasSavedStays) {
  TransformedEnv::Transforms transforms;
  RILL_ASSERT_OK_AND_ASSIGN(
      transforms.emplace_back(),
      DiscreteActionProjection::Create(
          {.num_actions_effective = 2, .max_actions = 50}));
  RILL_ASSERT_OK_AND_ASSIGN(auto cart_pole, MakeCartPole({.lanes = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto projected,
      TransformedEnv::Create(std::move(cart_pole), std::move(transforms)));
  const TransformedEnv& inner = *projected;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeNoopReset(std::move(projected), {.noops = 2, .random = false}));
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict saved, inner.SaveTransforms());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, saved.Clone());
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1, 0}));
  RILL_EXPECT_OK(saved.CheckEqual(before));
}

INSTANTIATE_TEST_SUITE_P(
    NoopCartPole, EnvConformanceTest,
    ::testing::Values([] { return NoopCartPole(3, {.noops = 12}); },
                      [] { return NoopCartPole(1, {.noops = 5}); }));
INSTANTIATE_TEST_SUITE_P(
    NoopFrameSkip, EnvConformanceTest,
    ::testing::Values([]() -> absl::StatusOr<std::unique_ptr<Env>> {
      RILL_ASSIGN_OR_RETURN(auto env, MakeCartPole({.lanes = 3}));
      RILL_ASSIGN_OR_RETURN(env,
                            MakeFrameSkip(std::move(env), {.frame_skip = 2}));
      return MakeNoopReset(std::move(env), {.noops = 4});
    }));

}  // namespace
}  // namespace rill
