// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/cart_pole.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Lt;
using ::testing::Not;

absl::Status AlwaysLeft(const TensorDict&, Tensor* action) {
  for (int64_t lane = 0; lane < action->num_elements(); ++lane) {
    action->data<int64_t>()[lane] = 0;
  }
  return absl::OkStatus();
}

// Observations after a reset of all lanes of a fresh environment.
std::vector<float> FirstObservations(const CartPoleOptions& options) {
  auto env = MakeCartPole(options);
  if (!env.ok()) return {};
  auto batch = Rollout(**env, FunctionPolicy(AlwaysLeft),
                       {.max_steps = 1, .break_when_any_done = false});
  if (!batch.ok()) return {};
  auto values = batch->Flat<float>("observation");
  return {values->begin(), values->end()};
}

TEST(CartPoleTest, SpecsAreThoseOfGymnasium) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 2}));
  EXPECT_EQ(env->name(), "CartPole-v1");
  EXPECT_EQ(*env->spec().action.Find("action"), LeafSpec::Categorical(2));
  ASSERT_EQ(env->spec().observation.leaves().size(), 1);
  EXPECT_EQ(env->spec().observation.leaves()[0].spec,
            LeafSpec::Unbounded(DType::kFloat32, {4}));
}

TEST(CartPoleTest, InitialStatesFillTheIntervalAndDiffer) {
  const std::vector<float> first = FirstObservations({.lanes = 1000});
  ASSERT_EQ(first.size(), 4000);
  EXPECT_THAT(first, Each(AllOf(Ge(-0.05f), Le(0.05f))));
  // Each misses once in 2e15: (1 - 1/100)^4000 and less.
  EXPECT_THAT(first, Not(Each(Ge(-0.049f))));
  EXPECT_THAT(first, Not(Each(Lt(0.049f))));
  EXPECT_NE(first[0], first[4]);
}

TEST(CartPoleTest, InitialStatesFollowTheSeed) {
  EXPECT_EQ(FirstObservations({.seed = 5}), FirstObservations({.seed = 5}));
  EXPECT_NE(FirstObservations({.seed = 5}), FirstObservations({.seed = 6}));
}

TEST(CartPoleTest, ALaneIsTheSameAmongAnyNumberOfLanes) {
  const std::vector<float> few = FirstObservations({.lanes = 2});
  std::vector<float> many = FirstObservations({.lanes = 9});
  many.resize(few.size());
  EXPECT_EQ(few, many);
}

TEST(CartPoleTest, EpisodesOfALaneDiffer) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole());
  RILL_ASSERT_OK_AND_ASSIGN(auto observation,
                            env->step().Flat<float>("observation"));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  const std::vector<float> first(observation.begin(), observation.end());
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  EXPECT_THAT(observation, Not(ElementsAreArray(first)));
}

TEST(CartPoleTest, TruncatesAtTheLimitAndSaysWhichEndItIs) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.max_episode_steps = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(AlwaysLeft),
              {.max_steps = 3, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, false, true)));
  EXPECT_THAT(batch.Flat<bool>("next/terminated"), IsOkAndHolds(Each(false)));
}

// Steps of a lane are counted here, also on into an environment that loads the
// state after a step of its own.
TEST(CartPoleTest, EachOfManyLanesIsTruncatedAtItsOwnLimit) {
  constexpr int64_t kLanes = 33;
  constexpr int64_t kLimit = 12;
  const CartPoleOptions options = {.lanes = kLanes,
                                   .max_episode_steps = kLimit};
  std::vector<int64_t> steps(kLanes, 0);
  std::vector<uint8_t> mask(kLanes, 1);
  const auto run = [&](Env& env, int first, int last) {
    RILL_ASSERT_OK_AND_ASSIGN(auto action, env.step().Flat<int64_t>("action"));
    RILL_ASSERT_OK_AND_ASSIGN(auto done, env.step().Flat<bool>("next/done"));
    RILL_ASSERT_OK_AND_ASSIGN(auto truncated,
                              env.step().Flat<bool>("next/truncated"));
    RILL_ASSERT_OK_AND_ASSIGN(auto terminated,
                              env.step().Flat<bool>("next/terminated"));
    for (int t = first; t < last; ++t) {
      std::fill(action.begin(), action.end(), t % 2);
      RILL_ASSERT_OK(env.Step());
      for (int lane = 0; lane < kLanes; ++lane) {
        const bool at_limit = ++steps[lane] >= kLimit;
        ASSERT_EQ(truncated[lane], at_limit) << "step " << t << " " << lane;
        ASSERT_EQ(done[lane], at_limit || terminated[lane]);
        mask[lane] = done[lane] || (lane + t) % 31 == 0;
        if (mask[lane] != 0) steps[lane] = 0;
      }
      RILL_ASSERT_OK(env.Reset(mask));
    }
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole(options));
  RILL_ASSERT_OK(env->Reset(mask));
  run(*env, 0, 55);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(auto other, MakeCartPole(options));
  RILL_ASSERT_OK(other->Reset(std::vector<uint8_t>(kLanes, 1)));
  RILL_ASSERT_OK(other->Step());
  RILL_ASSERT_OK(other->LoadState(state));
  run(*other, 55, 100);
}

TEST(CartPoleTest, FallingAtTheLimitIsBothEnds) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict whole,
                            Rollout(*env, FunctionPolicy(AlwaysLeft),
                                    {.max_steps = 99,
                                     .break_when_any_done = false,
                                     .break_when_all_done = true}));
  const int64_t length = whole.batch_shape()[1];
  RILL_ASSERT_OK_AND_ASSIGN(env, MakeCartPole({.max_episode_steps = length}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(AlwaysLeft),
              {.max_steps = length, .break_when_any_done = false}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict last, batch.SelectDim(1, length - 1));
  EXPECT_THAT(last.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(true)));
  EXPECT_THAT(last.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true)));
}

TEST(CartPoleTest, RefusedStepsSayLaneAndValueAndMoveNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 2}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, env->SaveState());
  EXPECT_THAT(env->Step(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("lane 1 is done or was never reset")));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto action, env->step().Flat<int64_t>("action"));
  action[1] = -3;
  EXPECT_THAT(env->Step(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("action of lane 1: got -3, want 0 or 1")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, env->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(auto old_state, before.Flat<double>("state"));
  RILL_ASSERT_OK_AND_ASSIGN(auto new_state, after.Flat<double>("state"));
  EXPECT_THAT(new_state.first(4), ElementsAreArray(old_state.first(4)));
  EXPECT_THAT(after.Flat<int64_t>("steps"), IsOkAndHolds(Each(0)));
}

TEST(CartPoleTest, LoadStateNamesWhatItCannotTake) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict good, env->SaveState());
  const auto expect_refused = [&](const TensorDict& state, const char* text) {
    EXPECT_THAT(
        env->LoadState(state),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(text)));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict now, env->SaveState());
    RILL_EXPECT_OK(now.CheckEqual(good));
  };
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict bad, good.Clone());
  bad.Flat<double>("state")->at(5) = std::numeric_limits<double>::infinity();
  expect_refused(bad, "state of lane 1: got inf, want finite");
  RILL_ASSERT_OK_AND_ASSIGN(bad, good.Clone());
  bad.Flat<int64_t>("steps")->at(0) = 501;
  expect_refused(bad, "steps of lane 0: got 501, want [0, 500]");
  RILL_ASSERT_OK_AND_ASSIGN(bad, good.Clone());
  bad.Flat<int64_t>("episode")->at(0) = -1;
  expect_refused(bad, "episode of lane 0: got -1, want [0, ");
  bad.Flat<int64_t>("episode")->at(0) = INT64_MAX;  // There is no next one.
  expect_refused(bad, "episode of lane 0: got 9223372036854775807");
  RILL_ASSERT_OK_AND_ASSIGN(bad, good.Index(0));
  expect_refused(bad, "\"steps\": got int64[1], want int64[2, 1]");
  RILL_ASSERT_OK_AND_ASSIGN(bad, good.Exclude({"seed"}));
  expect_refused(bad, "seed");
}

TEST(CartPoleTest, RefusesOptionsOutOfRange) {
  EXPECT_THAT(MakeCartPole({.lanes = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lanes: got 0, want [1, ")));
  EXPECT_THAT(MakeCartPole({.max_episode_steps = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_episode_steps: got -1, want >= 1")));
}

INSTANTIATE_TEST_SUITE_P(
    CartPole, EnvConformanceTest,
    ::testing::Values([] { return MakeCartPole({.lanes = 3}); },
                      [] { return MakeCartPole(); },
                      [] {
                        return MakeCartPole(
                            {.lanes = 2, .max_episode_steps = 5});
                      }));

}  // namespace
}  // namespace rill
