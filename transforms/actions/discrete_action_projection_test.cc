// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/discrete_action_projection.h"

#include <cstdint>
#include <utility>
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

namespace rill {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDictSpec SpecWith(const LeafSpec& action) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("action", action));
  return spec;
}

// Chosen and given actions as indices, of 20 steps of an environment.
std::vector<std::pair<int64_t, int64_t>> Actions(
    const DiscreteActionProjection::Options& options, const LeafSpec& inner,
    int64_t lanes) {
  auto projection = *DiscreteActionProjection::Create(options);
  auto environment =
      *FakeEnvironment::Create(SpecWith(inner), lanes, projection.get());
  const LeafSpec outer = *environment.plan().spec.Find("action");
  RILL_EXPECT_OK(environment.Reset(std::vector<uint8_t>(lanes, 1)));
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int i = 0; i < 20; ++i) {
    RILL_EXPECT_OK(environment.Step());
    Tensor chosen = *environment.step().Find("action");
    Tensor given = *environment.environment_step().Find("action");
    if (inner.domain == LeafSpec::Domain::kOneHot) {
      chosen = *outer.ToCategorical(chosen);
      given = *inner.ToCategorical(given);
    }
    for (int64_t j = 0; j < chosen.num_elements(); ++j) {
      pairs.emplace_back(chosen.data<int64_t>()[j], given.data<int64_t>()[j]);
    }
  }
  return pairs;
}

TEST(DiscreteActionProjectionTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto projection, DiscreteActionProjection::Create(
                           {.num_actions_effective = 4, .max_actions = 18}));
  EXPECT_EQ(projection->name(), "DiscreteActionProjection");
}

TEST(DiscreteActionProjectionTest, KeepsActionsAndDrawsAnewPastThem) {
  for (const LeafSpec& inner :
       {LeafSpec::Categorical(3), LeafSpec::OneHot(3, DType::kFloat32),
        LeafSpec::OneHot(3, DType::kBool, {2})}) {
    std::vector<int> drawn(3, 0);
    for (const auto& [chosen, given] :
         Actions({.num_actions_effective = 3, .max_actions = 7}, inner, 16)) {
      ASSERT_LT(given, 3);
      if (chosen < 3) {
        EXPECT_EQ(given, chosen);
      } else {
        ++drawn[static_cast<size_t>(given)];
      }
    }
    // A third each of 180 draws or more; 40 are at least 3 deviations off.
    EXPECT_THAT(drawn, Each(testing::Gt(40)));
  }
}

TEST(DiscreteActionProjectionTest, DrawsAreTheSeeds) {
  const auto draw = [](uint64_t seed) {
    return Actions(
        {.num_actions_effective = 3, .max_actions = 50, .seed = seed},
        LeafSpec::Categorical(3), 4);
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(DiscreteActionProjectionTest, AsManyOptionsAreLeftAsTheyAre) {
  for (const LeafSpec& inner :
       {LeafSpec::Categorical(1), LeafSpec::OneHot(1), LeafSpec::OneHot(5)}) {
    const int64_t n = inner.num_categories;
    for (const auto& [chosen, given] :
         Actions({.num_actions_effective = n, .max_actions = n}, inner, 2)) {
      EXPECT_EQ(chosen, given);
    }
  }
}

TEST(DiscreteActionProjectionTest, BadOptionsAndSpecsAreNamed) {
  for (const auto& [effective, max] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {3, 2}, {-1, -1}}) {
    EXPECT_THAT(DiscreteActionProjection::Create(
                    {.num_actions_effective = effective, .max_actions = max}),
                StatusIs(kInvalidArgument, HasSubstr("num_actions_effective")));
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      auto projection, DiscreteActionProjection::Create(
                           {.num_actions_effective = 3, .max_actions = 7}));
  for (const LeafSpec& bad :
       {LeafSpec::Categorical(2), LeafSpec::MultiCategorical({3}),
        LeafSpec::Bounded(DType::kFloat32, {3}, 0, 1),
        *LeafSpec::Categorical(3).WithMask(
            *Tensor::From<bool>({true, false, true}, {3}))}) {
    EXPECT_THAT(projection->PlanSteps(SpecWith(bad)).status(),
                StatusIs(kInvalidArgument, HasSubstr("= 3 options")));
  }
}

TEST(DiscreteActionProjectionTest, WrongActionsNameTheLane) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto projection, DiscreteActionProjection::Create(
                           {.num_actions_effective = 3, .max_actions = 7}));
  int64_t chosen[] = {0, 7};
  int64_t given[] = {0, 0};
  const auto bind = [](int64_t* data) {
    return BoundLeaf{.data = reinterpret_cast<std::byte*>(data),
                     .width = 8,
                     .dtype = DType::kInt64,
                     .rows = 2};
  };
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, projection->InitialState(2));
  EXPECT_THAT(projection->OnAction({bind(chosen), bind(given)}, &state),
              StatusIs(kInvalidArgument, HasSubstr("lane 1")));
}

StepTransformUnderTest UnderTest(const LeafSpec& action) {
  return BesideAnEnvironment<DiscreteActionProjection>(
      {.num_actions_effective = 3, .max_actions = 7}, SpecWith(action));
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(ProjectedIndices,
                                       UnderTest(LeafSpec::Categorical(3)));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(ProjectedOneHot,
                                       UnderTest(LeafSpec::OneHot(3)));

}  // namespace rill
