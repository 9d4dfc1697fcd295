// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/cart_pole.h"

#include <algorithm>
#include <cstdint>
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
using ::testing::Le;
using ::testing::Lt;
using ::testing::Not;

absl::Status AlwaysLeft(const TensorDict&, Tensor* action) {
  for (int64_t lane = 0; lane < action->num_elements(); ++lane) {
    action->data<int64_t>()[lane] = 0;
  }
  return absl::OkStatus();
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
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 1000}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(1000, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(auto first, env->step().Flat<float>("observation"));
  ASSERT_EQ(first.size(), 4000);
  EXPECT_THAT(first, Each(AllOf(Ge(-0.05f), Le(0.05f))));
  // Each misses once in 2e15: (1 - 1/100)^4000 and less.
  EXPECT_THAT(first, Not(Each(Ge(-0.049f))));
  EXPECT_THAT(first, Not(Each(Lt(0.049f))));
  EXPECT_NE(first[0], first[4]);
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
