// SPDX-License-Identifier: Apache-2.0
// Groups of agents through everything that steps an environment.
#include "rill/envs/testing/two_agents_env.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/transformed_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The first agent does nothing, the second its most.
class Twos final : public Policy {
 public:
  absl::StatusOr<int64_t> Act(const TensorDict& /*root*/,
                              const ActContext& /*context*/,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const auto action,
                          step->Flat<int64_t>("agents/action"));
    for (size_t i = 0; i < action.size(); ++i) action[i] = i % 2 == 0 ? 0 : 2;
    return 0;
  }
};

TEST(TwoAgentsEnvTest, AGroupWithEpisodesOfItsOwnBeginsWhileItsLaneGoesOn) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeTwoAgentsEnv({.lanes = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      Rollout(*env, Twos(), {.max_steps = 7, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<float>("guard/observation"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 0, 1)));
  EXPECT_THAT(batch.Flat<float>("next/guard/observation"),
              IsOkAndHolds(ElementsAre(1, 2, 1, 2, 1, 1, 2)));
  EXPECT_THAT(batch.Flat<bool>("guard/done"), IsOkAndHolds(Each(false)));
  EXPECT_THAT(batch.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(0, 0, 0, 0, 1, 0, 0)));
  EXPECT_THAT(batch.Flat<float>("agents/observation"),
              IsOkAndHolds(ElementsAre(0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 0, 10,
                                       1, 11)));
}

TEST(TwoAgentsEnvTest, AReturnIsTheSumOverTheAgents) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeTwoAgentsEnv({.lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const EvaluateResult result,
                            EvaluatePolicy(*env, Twos(), {.episodes = 4}));
  EXPECT_THAT(result.returns, Each(10));
}

TEST(TwoAgentsEnvTest, WrongActionsNameTheLane) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeTwoAgentsEnv({.lanes = 3}));
  env->step().Find("agents/action")->data<int64_t>()[3] = 3;
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("lane 1")));
}

TEST(TwoAgentsEnvTest, PoliciesOfManyLeavesExplore) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeTwoAgentsEnv({.lanes = 2}));
  Twos twos;
  RILL_ASSERT_OK_AND_ASSIGN(auto explorer, MakeEGreedy(&twos, env->spec()));
  RILL_EXPECT_OK(Rollout(*env, *explorer, {.max_steps = 5}).status());
}

TEST(TwoAgentsEnvTest, AGroupBeginsBehindTransformsToo) {
  RILL_ASSERT_OK_AND_ASSIGN(auto plain, MakeTwoAgentsEnv({.lanes = 1}));
  TransformedEnv::Transforms transforms;
  RILL_ASSERT_OK_AND_ASSIGN(
      transforms.emplace_back(),
      RowwiseTransform::Make(
          "Tenfold",
          {.map = *MakeRowStep({.scale = {10}}),
           .in_keys = {"agents/observation", "next/agents/observation"}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      TransformedEnv::Create(std::move(plain), std::move(transforms)));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      Rollout(*env, Twos(), {.max_steps = 7, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<float>("guard/observation"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 0, 1)));
  EXPECT_THAT(batch.Flat<float>("next/guard/observation"),
              IsOkAndHolds(ElementsAre(1, 2, 1, 2, 1, 1, 2)));
}

absl::StatusOr<std::unique_ptr<Env>> Counted() {
  RILL_ASSIGN_OR_RETURN(auto env, MakeTwoAgentsEnv({.lanes = 3}));
  TransformedEnv::Transforms transforms;
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        StepCounter::Create({.max_steps = 4}));
  return TransformedEnv::Create(std::move(env), std::move(transforms));
}

INSTANTIATE_TEST_SUITE_P(
    TwoAgents, EnvConformanceTest,
    ::testing::Values([] { return MakeTwoAgentsEnv({.lanes = 3}); },
                      [] { return Counted(); }));

}  // namespace
}  // namespace rill
