// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/action_scaling.h"

#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TensorDictSpec SpecWith(const LeafSpec& action) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("action", action));
  return spec;
}

// In [0, 10] and [-1, 3].
LeafSpec Pair() {
  return *LeafSpec::Bounded(*Tensor::From<float>({0, -1}, {2}),
                            *Tensor::From<float>({10, 3}, {2}));
}

TensorDict BatchOf(const std::vector<float>& actions) {
  const auto n = static_cast<int64_t>(actions.size());
  TensorDict batch({n / 2});
  RILL_EXPECT_OK(
      batch.Set("action", *Tensor::From<float>(actions, {n / 2, 2})));
  return batch;
}

TEST(ActionScalingTest, Example) {
  const LeafSpec torque = LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2);
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            ActionScaling::Create({.spec = torque}));
  EXPECT_EQ(scaling->name(), "ActionScaling");
}

TEST(ActionScalingTest, BoundsOfTheSpecBecomeThoseOfThePolicy) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            ActionScaling::Create({.spec = Pair()}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            scaling->PlanSteps(SpecWith(Pair())));
  EXPECT_EQ(*plan.spec.Find("action"),
            LeafSpec::Bounded(DType::kFloat32, {2}, -1, 1));
  TensorDict batch = BatchOf({-1, -1, 0, 0, 1, 1});
  RILL_ASSERT_OK(scaling->Inverse(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("action"),
              IsOkAndHolds(ElementsAre(0, -1, 5, 1, 10, 3)));
  RILL_ASSERT_OK(scaling->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("action"),
              IsOkAndHolds(ElementsAre(-1, -1, 0, 0, 1, 1)));
}

TEST(ActionScalingTest, ThePolicysRangeMayBeTheUnitInterval) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto scaling,
      ActionScaling::Create({.spec = Pair(), .standard_normal = false}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            scaling->PlanSteps(SpecWith(Pair())));
  EXPECT_EQ(*plan.spec.Find("action"),
            LeafSpec::Bounded(DType::kFloat32, {2}, 0, 1));
  TensorDict batch = BatchOf({0, 0, 0.5f, 0.5f, 1, 1});
  RILL_ASSERT_OK(scaling->Inverse(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("action"),
              IsOkAndHolds(ElementsAre(0, -1, 5, 1, 10, 3)));
}

TEST(ActionScalingTest, GivenNumbersNeedNoSpecInABuffer) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto scaling, ActionScaling::Create(
                        {.loc = {1, 2}, .scale = {2, 4}, .in_keys_inv = {}}));
  TensorDict batch = BatchOf({3, 6});
  RILL_ASSERT_OK(scaling->Inverse(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("action"), IsOkAndHolds(ElementsAre(3, 6)));
  RILL_ASSERT_OK(scaling->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("action"), IsOkAndHolds(ElementsAre(1, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            scaling->PlanSteps(SpecWith(Pair())));
  EXPECT_EQ(plan.spec, SpecWith(Pair()));
  EXPECT_TRUE(plan.leaves.empty());
}

TEST(ActionScalingTest, GivenNumbersMapTheBounds) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto scaling,
      ActionScaling::Create({.spec = Pair(), .loc = {1}, .scale = {-2}}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            scaling->PlanSteps(SpecWith(Pair())));
  EXPECT_EQ(*plan.spec.Find("action"),
            *LeafSpec::Bounded(*Tensor::From<float>({-4.5f, -1}, {2}),
                               *Tensor::From<float>({0.5f, 1}, {2})));
  const LeafSpec free = LeafSpec::Unbounded(DType::kFloat64, {2});
  RILL_ASSERT_OK_AND_ASSIGN(
      auto unbounded,
      ActionScaling::Create({.spec = free, .loc = {1}, .scale = {2}}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan as_it_was,
                            unbounded->PlanSteps(SpecWith(free)));
  EXPECT_EQ(*as_it_was.spec.Find("action"), free);
}

// In double, the middle and half of the distance are past some bounds.
TEST(ActionScalingTest, RoundingLeavesNoActionOutsideTheBounds) {
  for (int i = 1; i < 300; ++i) {
    const LeafSpec odd =
        LeafSpec::Bounded(DType::kFloat64, {1}, -0.1 * i, 0.07 * i);
    RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                              ActionScaling::Create({.spec = odd}));
    TensorDict batch({2});
    RILL_ASSERT_OK(batch.Set("action", *Tensor::From<double>({-1, 1}, {2, 1})));
    RILL_ASSERT_OK(scaling->Inverse(&batch, nullptr));
    EXPECT_TRUE(odd.Contains(*batch.Find("action"))) << i;
  }
}

TEST(ActionScalingTest, BadOptionsAreNamed) {
  EXPECT_THAT(ActionScaling::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("spec")));
  EXPECT_THAT(ActionScaling::Create({.loc = {1}}),
              StatusIs(kInvalidArgument, HasSubstr("scale")));
  EXPECT_THAT(ActionScaling::Create({.loc = {kInfinity}, .scale = {1}}),
              StatusIs(kInvalidArgument, HasSubstr("loc: element 0")));
  for (const double bad : {0.0, 1e-60, kInfinity}) {
    EXPECT_THAT(ActionScaling::Create({.loc = {0}, .scale = {bad}}),
                StatusIs(kInvalidArgument, HasSubstr("scale: element 0")));
  }
  EXPECT_THAT(ActionScaling::Create({.loc = {1, 2}, .scale = {1, 2, 3}}),
              StatusIs(kInvalidArgument, HasSubstr("2 and 3 numbers")));
  EXPECT_THAT(ActionScaling::Create(
                  {.spec = Pair(), .loc = {1, 2, 3}, .scale = {1, 1, 1}}),
              StatusIs(kInvalidArgument, HasSubstr("want 1 or 2")));
  EXPECT_THAT(
      ActionScaling::Create({.loc = {1}, .scale = {1}, .in_keys = {"/"}}),
      StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  for (const LeafSpec& bad :
       {LeafSpec::Unbounded(DType::kFloat32, {1}), LeafSpec::Categorical(3),
        LeafSpec::Bounded(DType::kFloat32, {1}, 0, kInfinity),
        LeafSpec::Bounded(DType::kFloat32, {1}, 1, 1),
        LeafSpec::Bounded(DType::kFloat32, {0}, 0, 1),
        LeafSpec::Bounded(DType::kFloat64, {1}, -1e308, 1e308)}) {
    EXPECT_THAT(ActionScaling::Create({.spec = bad}),
                StatusIs(kInvalidArgument, HasSubstr("spec: ")));
  }
  RILL_EXPECT_OK(ActionScaling::Create(
      {.spec = LeafSpec::Bounded(DType::kFloat32, {1}, -3e38, 3e38)}));
}

TEST(ActionScalingTest, BesideAnEnvironmentItWantsItsSpec) {
  RILL_ASSERT_OK_AND_ASSIGN(auto numbers,
                            ActionScaling::Create({.loc = {0}, .scale = {1}}));
  EXPECT_THAT(numbers->PlanSteps(SpecWith(Pair())).status(),
              StatusIs(kInvalidArgument, HasSubstr("action_spec()")));
  RILL_ASSERT_OK_AND_ASSIGN(auto other,
                            ActionScaling::Create({.spec = Pair()}));
  EXPECT_THAT(other->PlanSteps(TedSpec()).status(),
              StatusIs(kInvalidArgument, HasSubstr("action_spec()")));
}

TEST(ActionScalingTest, ActionsOfAnotherKindAreErrors) {
  RILL_ASSERT_OK_AND_ASSIGN(auto scaling,
                            ActionScaling::Create({.spec = Pair()}));
  TensorDict batch({2});
  EXPECT_THAT(scaling->Forward(&batch, nullptr),
              StatusIs(absl::StatusCode::kNotFound));
  RILL_ASSERT_OK(batch.Set("action", *Tensor::Zeros(DType::kInt64, {2, 2})));
  EXPECT_THAT(scaling->Forward(&batch, nullptr), StatusIs(kInvalidArgument));
  EXPECT_THAT(scaling->Inverse(&batch, nullptr), StatusIs(kInvalidArgument));
  RILL_ASSERT_OK(batch.Set("action", *Tensor::Zeros(DType::kFloat32, {2, 3})));
  EXPECT_THAT(scaling->Forward(&batch, nullptr), StatusIs(kInvalidArgument));
  EXPECT_THAT(scaling->Inverse(&batch, nullptr), StatusIs(kInvalidArgument));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    ScalingOfASpec, InABuffer<ActionScaling>({.spec = Pair()}, SpecWith(Pair()),
                                             /*inverse_tolerance=*/1e-6));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    ScalingOfNumbers,
    InABuffer<ActionScaling>({.loc = {1, 2}, .scale = {3, -4}},
                             SpecWith(Pair()), /*inverse_tolerance=*/1e-6));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    ScalingOfASpec,
    BesideAnEnvironment<ActionScaling>({.spec = Pair()}, SpecWith(Pair())));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    ScalingOfNumbers,
    BesideAnEnvironment<ActionScaling>({.spec = Pair(),
                                        .loc = {0.3},
                                        .scale = {0.7, -3},
                                        .standard_normal = false},
                                       SpecWith(Pair())));

}  // namespace rill
