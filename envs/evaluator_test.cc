// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/evaluator.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Stay(const TensorDict&, Tensor*) { return absl::OkStatus(); }

// Feedback that keeps the pole up for ever.
absl::Status Balance(const TensorDict& root, Tensor* action) {
  RILL_ASSIGN_OR_RETURN(auto observation, root.Flat<float>("observation"));
  for (int64_t lane = 0; lane < action->num_elements(); ++lane) {
    const float* s = observation.data() + 4 * lane;
    action->data<int64_t>()[lane] =
        0.1f * s[0] + 0.3f * s[1] + 2.0f * s[2] + 0.6f * s[3] > 0;
  }
  return absl::OkStatus();
}

TEST(EvaluatorTest, EveryLaneRunsItsShareOfEpisodes) {
  // Lane 0 has episodes of 2 steps, lane 1 of 5: taking the first that end
  // would take more of lane 0.
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      EvaluateResult result,
      EvaluatePolicy(*env, FunctionPolicy(Stay), {.episodes = 5}));
  EXPECT_THAT(result.lengths, ElementsAre(2, 5, 2, 5, 2));
  EXPECT_THAT(result.returns, ElementsAre(3, 15, 3, 15, 3));
  EXPECT_EQ(result.mean_return, 39.0 / 5);
}

// The contexts of a policy's calls.
class Listener final : public Policy {
 public:
  absl::StatusOr<int64_t> Act(const TensorDict& /*root*/,
                              const ActContext& context,
                              TensorDict* /*step*/) override {
    contexts.push_back(context);
    return 0;
  }
  std::vector<ActContext> contexts;
};

TEST(EvaluatorTest, ActsWithoutExplorationUnlessAsked) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  Listener quiet, loud;
  RILL_ASSERT_OK(EvaluatePolicy(*env, quiet, {.episodes = 2}).status());
  RILL_ASSERT_OK(
      EvaluatePolicy(*env, loud, {.episodes = 2, .explore = true}).status());
  ASSERT_EQ(quiet.contexts.size(), 3);
  for (int64_t t = 0; t < 3; ++t) {
    EXPECT_FALSE(quiet.contexts[t].explore);
    EXPECT_TRUE(loud.contexts[t].explore);
    EXPECT_EQ(quiet.contexts[t].step, t);
    EXPECT_EQ(quiet.contexts[t].frames, 2 * t);
  }
}

TEST(EvaluatorTest, FewerEpisodesThanLanes) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(
      EvaluateResult result,
      EvaluatePolicy(*env, FunctionPolicy(Stay), {.episodes = 2}));
  EXPECT_THAT(result.lengths, ElementsAre(3, 3));
}

TEST(EvaluatorTest, ABalancedPoleReturnsFiveHundred) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(EvaluateResult result,
                            EvaluatePolicy(*env, FunctionPolicy(Balance),
                                           {.episodes = 8, .seed = 3}));
  EXPECT_THAT(result.returns, Each(500));
}

TEST(EvaluatorTest, EqualSeedsGiveEqualResults) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 3}));
  const EvaluateOptions options = {.episodes = 9, .seed = 3};
  RILL_ASSERT_OK_AND_ASSIGN(
      auto first, EvaluatePolicy(*env, FunctionPolicy(Stay), options));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto again, EvaluatePolicy(*env, FunctionPolicy(Stay), options));
  EXPECT_EQ(first.returns, again.returns);
}

TEST(EvaluatorTest, AnEpisodeWithoutEndIsAnError) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.episode_steps = 1000}));
  EXPECT_THAT(
      EvaluatePolicy(*env, FunctionPolicy(Stay), {.max_steps_per_episode = 50}),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("episode 0 in lane 0: not done after 50")));
}

// Memory is taken for episodes that were run.
TEST(EvaluatorTest, MoreEpisodesThanMemoryHoldsMayBeAskedFor) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.episode_steps = 1000}));
  EXPECT_THAT(
      EvaluatePolicy(*env, FunctionPolicy(Stay),
                     {.episodes = INT64_MAX, .max_steps_per_episode = 50}),
      StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(EvaluatorTest, NamesTheWrongOption) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({}));
  EXPECT_THAT(EvaluatePolicy(*env, FunctionPolicy(Stay), {.episodes = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("episodes: got 0, want >= 1")));
  EXPECT_THAT(
      EvaluatePolicy(*env, FunctionPolicy(Stay), {.max_steps_per_episode = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("max_steps_per_episode: got 0")));
}

}  // namespace
}  // namespace rill
