// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/reward_sum.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
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

TensorDictSpec SpecWith(absl::string_view key, const LeafSpec& reward) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set(key, reward));
  return spec;
}

StepTransformUnderTest UnderTestOfAgents() {
  return BesideAnEnvironment<RewardSum>(
      {.reward_key = "team/reward", .sum_key = "team/episode_reward"},
      SpecWith("next/team/reward",
               LeafSpec::Unbounded(DType::kFloat32, {3, 1})));
}

TensorDict Rewards(const std::vector<float>& rewards,
                   absl::string_view key = "next/reward") {
  const auto lanes = static_cast<int64_t>(rewards.size());
  TensorDict made({lanes});
  RILL_EXPECT_OK(made.Set(key, *Tensor::From<float>(rewards, {lanes, 1})));
  return made;
}

TEST(RewardSumTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({}));
  EXPECT_EQ(sum->name(), "RewardSum");
}

TEST(RewardSumTest, SumsTheRewardsOfEachLaneFromItsReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 2, sum.get()));
  const TensorDict& step = environment.step();
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  EXPECT_THAT(step.Flat<float>("episode_reward"),
              IsOkAndHolds(ElementsAre(0, 0)));
  RILL_ASSERT_OK(environment.Step(Rewards({1, 2})));
  EXPECT_THAT(step.Flat<float>("next/episode_reward"),
              IsOkAndHolds(ElementsAre(1, 2)));
  RILL_ASSERT_OK(environment.Reset({1, 0}));
  EXPECT_THAT(step.Flat<float>("episode_reward"),
              IsOkAndHolds(ElementsAre(0, 2)));
  RILL_ASSERT_OK(environment.Step(Rewards({0.5f, -1.0f})));
  EXPECT_THAT(step.Flat<float>("next/episode_reward"),
              IsOkAndHolds(ElementsAre(0.5f, 1.0f)));
}

// More lanes than are summed at once, and some beside them.
TEST(RewardSumTest, SumsEachOfManyLanes) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 19, sum.get()));
  RILL_ASSERT_OK(environment.Reset(std::vector<uint8_t>(19, 1)));
  std::vector<float> rewards(19);
  std::iota(rewards.begin(), rewards.end(), 1);
  for (float times = 1; times < 4; ++times) {
    RILL_ASSERT_OK(environment.Step(Rewards(rewards)));
    for (size_t i = 0; i < rewards.size(); ++i) {
      EXPECT_EQ(
          environment.step().Find("next/episode_reward")->data<float>()[i],
          times * rewards[i]);
    }
  }
}

TEST(RewardSumTest, KeysMayBeNamed) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto sum, RewardSum::Create({.reward_key = "score", .sum_key = "total"}));
  TensorDictSpec spec;
  RILL_ASSERT_OK(
      spec.Set("next/score", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(spec, 1, sum.get()));
  RILL_ASSERT_OK(environment.Reset({1}));
  RILL_ASSERT_OK(environment.Step(Rewards({4}, "next/score")));
  EXPECT_THAT(environment.step().Flat<float>("next/total"),
              IsOkAndHolds(ElementsAre(4)));
  EXPECT_THAT(RewardSum::Create({.sum_key = ""}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("RewardSum::Create: sum_key")));
}

TEST(RewardSumTest, SumsOfAgentsBeginWithTheirLane) {
  const StepTransformUnderTest under_test = UnderTestOfAgents();
  const auto sum = under_test.make();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment,
      FakeEnvironment::Create(under_test.step_spec, 2, sum.get()));
  const TensorDict& step = environment.step();
  TensorDict rewards({2});
  RILL_ASSERT_OK(rewards.Set(
      "next/team/reward", *Tensor::From<float>({1, 2, 3, 4, 5, 6}, {2, 3, 1})));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  RILL_ASSERT_OK(environment.Step(rewards));
  EXPECT_THAT(step.Flat<float>("next/team/episode_reward"),
              IsOkAndHolds(ElementsAre(1, 2, 3, 4, 5, 6)));
  RILL_ASSERT_OK(environment.Reset({0, 1}));
  EXPECT_THAT((*step.Flat<float>("team/episode_reward")).subspan(3),
              ElementsAre(0, 0, 0));
  EXPECT_THAT((*step.Flat<float>("team/episode_reward")).first(3),
              ::testing::Not(ElementsAre(0, 0, 0)));
}

TEST(RewardSumTest, AKeyThatTheStepsHaveIsRefused) {
  // Below next alone.
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({.sum_key = "reward"}));
  EXPECT_THAT(sum->PlanSteps(TedSpec()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"next/reward\"")));
}

TEST(RewardSumTest, RewardOfAnotherShapeOrTypeIsRefusedNamingBoth) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({}));
  for (const LeafSpec& reward : {LeafSpec::Unbounded(DType::kFloat32, {3}),
                                 LeafSpec::Unbounded(DType::kInt64, {1})}) {
    TensorDictSpec spec = TedSpec();
    RILL_ASSERT_OK(spec.Set("next/reward", reward));
    EXPECT_THAT(sum->PlanSteps(spec).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(reward.ToString()),
                               HasSubstr("want float32[1]"))));
  }
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    RewardSum, BesideAnEnvironment<RewardSum>({}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    RewardSumOfDoubles,
    BesideAnEnvironment<RewardSum>(
        {},
        SpecWith("next/reward", LeafSpec::Unbounded(DType::kFloat64, {1}))));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(RewardSumOfAgents, UnderTestOfAgents());

}  // namespace rill
