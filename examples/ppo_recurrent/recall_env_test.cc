// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/recall_env.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill::ppo_recurrent {
namespace {

INSTANTIATE_TEST_SUITE_P(Recall, EnvConformanceTest, ::testing::Values([] {
                           return MakeRecall({.lanes = 3});
                         }));

// A player that remembers the cue of each lane and answers it.
TEST(RecallEnvTest, WhoRemembersTheCueGetsTheBestReturn) {
  constexpr int64_t kLanes = 64;
  RILL_ASSERT_OK_AND_ASSIGN(const auto env, MakeRecall({.lanes = kLanes}));
  const TensorDict& step = env->step();
  RILL_ASSERT_OK_AND_ASSIGN(const auto action, step.Flat<int64_t>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto root, step.Flat<float>("observation"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto mask, step.Flat<bool>("action_mask"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reward, step.Flat<float>("next/reward"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto done, step.Flat<bool>("next/done"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto terminated,
                            step.Flat<bool>("next/terminated"));
  constexpr int64_t kWidth = kRecallCues + 1;
  double sum = 0;
  int64_t episodes = 0, cut = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RILL_ASSERT_OK(env->Seed(seed));
    RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
    std::vector<int64_t> cues(kLanes, -1);
    std::vector<bool> is_over(kLanes, false);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      for (int64_t cue = 0; cue < kRecallCues; ++cue) {
        if (root[lane * kWidth + cue] == 1) cues[lane] = cue;
      }
    }
    for (int t = 0; t < 12; ++t) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const bool is_asked = root[lane * kWidth + kRecallCues] == 1;
        action[lane] = is_asked ? 1 + cues[lane] : 0;
        ASSERT_TRUE(mask[lane * kWidth + action[lane]]);
      }
      RILL_ASSERT_OK(env->Step());
      std::vector<uint8_t> again(kLanes, 0);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        if (!is_over[lane]) {
          sum += reward[lane];
          cut += done[lane] && !terminated[lane] ? 1 : 0;
          episodes += done[lane] ? 1 : 0;
        }
        is_over[lane] = is_over[lane] || done[lane];
        again[lane] = done[lane] ? 1 : 0;
      }
      RILL_ASSERT_OK(
          step.Find("observation")->CopyFrom(*step.Find("next/observation")));
      RILL_ASSERT_OK(
          step.Find("action_mask")->CopyFrom(*step.Find("next/action_mask")));
      RILL_ASSERT_OK(env->Reset(again));
    }
  }
  ASSERT_EQ(episodes, 20 * kLanes);
  // Five deviations of 1,280 episodes, of which 1 in 12 is cut.
  EXPECT_NEAR(static_cast<double>(cut) / episodes, 3.0 / 36, 0.04);
  EXPECT_EQ(sum, 2.0 * episodes - cut);
}

}  // namespace
}  // namespace rill::ppo_recurrent
