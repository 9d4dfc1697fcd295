// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/reward_sum.h"

#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TransformUnderTest UnderTest() {
  return {.make = [] { return *RewardSum::Create({}); },
          .batch_spec = TedSpec(),
          .step_spec = TedSpec()};
}

TransformUnderTest UnderTestOfDoubles() {
  TransformUnderTest under_test = UnderTest();
  RILL_EXPECT_OK(under_test.step_spec.Set(
      "next/reward", LeafSpec::Unbounded(DType::kFloat64, {1})));
  return under_test;
}

// The step after `root`, and the root after that step.
TensorDict StepFrom(const TensorDict& root, const std::vector<float>& rewards,
                    Transform& sum) {
  TensorDict step = root;
  RILL_EXPECT_OK(
      step.Set("next/reward", *Tensor::From<float>(rewards, {2, 1})));
  RILL_EXPECT_OK(sum.OnStep(&step));
  return step;
}

TEST(RewardSumTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({}));
  EXPECT_EQ(sum->name(), "RewardSum");
}

TEST(RewardSumTest, SumsTheRewardsOfEachLaneFromItsReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({}));
  TensorDict root({2});
  RILL_ASSERT_OK(sum->OnReset({1, 1}, &root));
  EXPECT_THAT(root.Flat<float>("episode_reward"),
              IsOkAndHolds(ElementsAre(0, 0)));
  TensorDict step = StepFrom(root, {1, 2}, *sum);
  EXPECT_THAT(step.Flat<float>("next/episode_reward"),
              IsOkAndHolds(ElementsAre(1, 2)));
  RILL_ASSERT_OK(root.Set("episode_reward", *step.Find("next/episode_reward")));
  RILL_ASSERT_OK(sum->OnReset({1, 0}, &root));
  EXPECT_THAT(root.Flat<float>("episode_reward"),
              IsOkAndHolds(ElementsAre(0, 2)));
  // The step before keeps its sums although the root shared their bytes.
  EXPECT_THAT(step.Flat<float>("next/episode_reward"),
              IsOkAndHolds(ElementsAre(1, 2)));
  step = StepFrom(root, {0.5f, -1.0f}, *sum);
  EXPECT_THAT(step.Flat<float>("next/episode_reward"),
              IsOkAndHolds(ElementsAre(0.5f, 1.0f)));
}

TEST(RewardSumTest, KeysMayBeNamed) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto sum, RewardSum::Create({.reward_key = "score", .sum_key = "total"}));
  TensorDict step({1});
  RILL_ASSERT_OK(sum->OnReset({1}, &step));
  RILL_ASSERT_OK(step.Set("next/score", *Tensor::From<float>({4.0f}, {1, 1})));
  RILL_ASSERT_OK(sum->OnStep(&step));
  EXPECT_THAT(step.Flat<float>("next/total"), IsOkAndHolds(ElementsAre(4)));
  EXPECT_THAT(RewardSum::Create({.sum_key = ""}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("RewardSum::Create: sum_key")));
}

TEST(RewardSumTest, RewardOfAnotherShapeOrTypeIsRefusedNamingBoth) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({}));
  TensorDict step({2});
  RILL_ASSERT_OK(sum->OnReset({1, 1}, &step));
  RILL_ASSERT_OK(
      step.Set("next/reward", *Tensor::Zeros(DType::kInt64, {2, 1})));
  EXPECT_THAT(sum->OnStep(&step), StatusIs(absl::StatusCode::kInvalidArgument,
                                           AllOf(HasSubstr("int64[2, 1]"),
                                                 HasSubstr("float32[2, 1]"))));
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(
      spec.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {3})));
  EXPECT_THAT(sum->StepSpec(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("want float32[1]")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(RewardSum, UnderTest());
INSTANTIATE_TRANSFORM_CONFORMANCE(RewardSumOfDoubles, UnderTestOfDoubles());

}  // namespace rill
