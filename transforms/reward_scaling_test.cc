// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/reward_scaling.h"

#include <limits>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDict BatchOf(const Tensor& reward) {
  TensorDict batch({reward.shape()[0]});
  RILL_EXPECT_OK(batch.Set("next/reward", reward));
  return batch;
}

TEST(RewardScalingTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            RewardScaling::Create({.scale = 0.1}));
  EXPECT_EQ(scaling->name(), "RewardScaling");
}

TEST(RewardScalingTest, ScalesAfterAReadAndNotBeforeAWrite) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            RewardScaling::Create({.scale = 2, .loc = 1}));
  TensorDict batch = BatchOf(*Tensor::From<float>({1, 2}, {2, 1}));
  RILL_ASSERT_OK(scaling->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(3, 5)));
  RILL_ASSERT_OK(scaling->Inverse(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(3, 5)));
}

TEST(RewardScalingTest, ScalesAfterAStep) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            RewardScaling::Create({.scale = 2, .loc = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment, FakeEnvironment::Create(TedSpec(), 2, scaling.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  RILL_ASSERT_OK(
      environment.Step(BatchOf(*Tensor::From<float>({1, 2}, {2, 1}))));
  EXPECT_THAT(environment.step().Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(3, 5)));
}

TEST(RewardScalingTest, T7_StandardNormalTurnsTheFormulaRound) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto scaling,
      RewardScaling::Create({.scale = 2, .loc = 1, .standard_normal = true}));
  TensorDict batch = BatchOf(*Tensor::From<float>({1, 2}, {2, 1}));
  RILL_ASSERT_OK(scaling->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(0, 0.5f)));
}

TEST(RewardScalingTest, DoublesKeepTheirPrecision) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            RewardScaling::Create({.loc = 1e-12}));
  TensorDict batch = BatchOf(*Tensor::From<double>({0.5}, {1, 1}));
  RILL_ASSERT_OK(scaling->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<double>("next/reward"),
              IsOkAndHolds(ElementsAre(0.5 + 1e-12)));
}

TEST(RewardScalingTest, ForwardWorksInPlace) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling, RewardScaling::Create({.scale = 2}));
  const Tensor reward = *Tensor::From<float>({1}, {1, 1});
  TensorDict batch = BatchOf(reward);
  RILL_ASSERT_OK(scaling->Forward(&batch, nullptr));
  EXPECT_EQ(reward.data<float>()[0], 2);
}

TEST(RewardScalingTest, SpecOfABoundedRewardIsScaledToo) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            RewardScaling::Create({.scale = -2, .loc = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec spec,
                            scaling->ForwardSpec(TedSpec()));
  EXPECT_EQ(*spec.Find("next/reward"),
            LeafSpec::Bounded(DType::kFloat32, {1}, -3, 5));
}

TEST(RewardScalingTest, OptionsOutOfRangeAreNamed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (double bad : {0.0, kInfinity, -kInfinity, 1e-60, 1e60,
                     std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(RewardScaling::Create({.scale = bad}),
                StatusIs(kInvalidArgument, HasSubstr("scale")));
  }
  EXPECT_THAT(RewardScaling::Create({.loc = kInfinity}),
              StatusIs(kInvalidArgument, HasSubstr("loc")));
  EXPECT_THAT(RewardScaling::Create({.key = "/"}),
              StatusIs(kInvalidArgument, HasSubstr("key")));
}

TEST(RewardScalingTest, WrongOrMissingRewardIsAnError) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling, RewardScaling::Create({.scale = 2}));
  TensorDict none({1});
  EXPECT_THAT(
      scaling->Forward(&none, nullptr),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("RewardScaling: ")));
  TensorDict batch = BatchOf(*Tensor::From<int64_t>({1}, {1, 1}));
  EXPECT_THAT(scaling->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("got int64"), HasSubstr("float64"))));
  EXPECT_THAT(scaling->ForwardSpec(TensorDictSpec::Of(batch)),
              StatusIs(kInvalidArgument, HasSubstr("int64")));
  EXPECT_THAT(scaling->PlanSteps(TensorDictSpec::Of(batch)).status(),
              StatusIs(kInvalidArgument, HasSubstr("int64")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    Both, InABuffer<RewardScaling>({.scale = 0.1, .loc = 0.3}, TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    StandardNormal,
    InABuffer<RewardScaling>({.scale = -3, .loc = 0.3, .standard_normal = true},
                             TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Both,
    BesideAnEnvironment<RewardScaling>({.scale = 0.1, .loc = 0.3}, TedSpec()));

}  // namespace rill
