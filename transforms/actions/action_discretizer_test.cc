// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/action_discretizer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
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

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using Sampling = ActionDiscretizer::Sampling;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// In [0, 10] and [-1, 1].
LeafSpec Pair(DType dtype = DType::kFloat32) {
  return *LeafSpec::Bounded(*Cast(*Tensor::From<double>({0, -1}, {2}), dtype),
                            *Cast(*Tensor::From<double>({10, 1}, {2}), dtype));
}

TensorDictSpec SpecWith(const LeafSpec& action) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("action", action));
  return spec;
}

StepTransformUnderTest UnderTest(const ActionDiscretizer::Options& options) {
  return BesideAnEnvironment<ActionDiscretizer>(options,
                                                SpecWith(options.spec));
}

// The environment's action for an action of two lanes.
template <typename From, typename To>
std::vector<To> Map(const ActionDiscretizer::Options& options,
                    const std::vector<From>& chosen, const Shape& shape) {
  auto discretizer = ActionDiscretizer::Create(options);
  RILL_EXPECT_OK(discretizer);
  TensorDict state = *(*discretizer)->InitialState(2);
  const Tensor from = *Tensor::From<From>(chosen, Shape({2}).Concat(shape));
  const Tensor to =
      *Tensor::Zeros(options.spec.dtype, Shape({2}).Concat(options.spec.shape));
  const auto bind = [](const Tensor& tensor) {
    return BoundLeaf{.data = tensor.raw_data(),
                     .width = tensor.size_bytes() / 2,
                     .dtype = tensor.dtype(),
                     .is_writable = true,
                     .rows = 2,
                     .shape = tensor.shape().Suffix(1)};
  };
  RILL_EXPECT_OK((*discretizer)->OnAction({bind(from), bind(to)}, &state));
  const auto made = *to.Flat<To>();
  return std::vector<To>(made.begin(), made.end());
}

TEST(ActionDiscretizerTest, Example) {
  const LeafSpec torque = LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto discretizer,
      ActionDiscretizer::Create({.spec = torque, .num_intervals = {11}}));
  EXPECT_EQ(discretizer->name(), "ActionDiscretizer");
}

TEST(ActionDiscretizerTest, TakesTheNumberThatSamplingSays) {
  const std::vector<int64_t> chosen = {0, 3, 4, 1};
  const auto map = [&](Sampling sampling) {
    return Map<int64_t, float>(
        {.spec = Pair(), .num_intervals = {5, 4}, .sampling = sampling}, chosen,
        {2});
  };
  EXPECT_THAT(map(Sampling::kLow), ElementsAre(0, 0.5f, 8, -0.5f));
  EXPECT_THAT(map(Sampling::kMedian), ElementsAre(1, 0.75f, 9, -0.25f));
  EXPECT_THAT(map(Sampling::kHigh), ElementsAre(2, 1, 10, 0));
  const std::vector<float> low = map(Sampling::kLow);
  const std::vector<float> high = map(Sampling::kHigh);
  const std::vector<float> random = map(Sampling::kRandom);
  for (size_t i = 0; i < random.size(); ++i) {
    EXPECT_GE(random[i], low[i]);
    EXPECT_LE(random[i], high[i]);
  }
  EXPECT_NE(random, map(Sampling::kMedian));
  EXPECT_EQ(random, map(Sampling::kRandom));
}

TEST(ActionDiscretizerTest, OneNumberOfIntervalsIsForAllElements) {
  EXPECT_THAT((Map<int64_t, double>(
                  {.spec = Pair(DType::kFloat64), .num_intervals = {2}},
                  {0, 0, 1, 1}, {2})),
              ElementsAre(2.5, -0.5, 7.5, 0.5));
}

TEST(ActionDiscretizerTest, OneHotChoicesLieOneBehindTheOther) {
  EXPECT_THAT((Map<bool, float>({.spec = Pair(),
                                 .num_intervals = {2, 3},
                                 .sampling = Sampling::kLow,
                                 .categorical = false},
                                {true, false, false, false, true,  //
                                 false, true, true, false, false},
                                {5})),
              ElementsAre(0, FloatEq(1.0f / 3), 5, -1));
}

TEST(ActionDiscretizerTest, ANumberAloneIsAnIndex) {
  const LeafSpec number = LeafSpec::Bounded(DType::kFloat32, {}, -2, 2);
  EXPECT_THAT(
      (Map<int64_t, float>({.spec = number, .num_intervals = {4}}, {0, 3}, {})),
      ElementsAre(-1.5f, 1.5f));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto discretizer,
      ActionDiscretizer::Create({.spec = number, .num_intervals = {4}}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            discretizer->PlanSteps(SpecWith(number)));
  EXPECT_EQ(*plan.spec.Find("action"), LeafSpec::Categorical(4));
}

TEST(ActionDiscretizerTest, NumbersStayInsideTheBounds) {
  const LeafSpec odd = LeafSpec::Bounded(DType::kFloat32, {1}, -0.3, 0.1);
  for (int64_t n = 1; n < 200; ++n) {
    const std::vector<float> ends = Map<int64_t, float>(
        {.spec = odd, .num_intervals = {n}, .sampling = Sampling::kHigh},
        {0, n - 1}, {1});
    EXPECT_EQ(ends[1], 0.1f) << n;
  }
}

// The difference of such bounds is no number.
TEST(ActionDiscretizerTest, BoundsMayBeAsFarApartAsNumbersAre) {
  const LeafSpec wide = LeafSpec::Bounded(DType::kFloat64, {1}, -1e308, 1e308);
  const auto map = [&](Sampling sampling) {
    return Map<int64_t, double>(
        {.spec = wide, .num_intervals = {2}, .sampling = sampling}, {0, 1},
        {1});
  };
  EXPECT_THAT(map(Sampling::kLow), ElementsAre(-1e308, 0));
  EXPECT_THAT(map(Sampling::kMedian), ElementsAre(-5e307, 5e307));
  EXPECT_THAT(map(Sampling::kHigh), ElementsAre(0, 1e308));
}

// As on a device, whatever instructions this is compiled for.
TEST(ActionDiscretizerTest, NoProductIsFusedWithASum) {
  constexpr int64_t kIntervals = 500;
  const double low = -0.1;
  const double high = 0.3;
  const ActionDiscretizer::Options options = {
      .spec = LeafSpec::Bounded(DType::kFloat64, {1}, low, high),
      .num_intervals = {kIntervals}};
  int64_t others = 0;
  for (int64_t i = 0; i < kIntervals; i += 2) {
    const std::vector<double> got =
        Map<int64_t, double>(options, {i, i + 1}, {1});
    for (int64_t k = 0; k < 2; ++k) {
      const double share = (static_cast<double>(i + k) + 0.5) / kIntervals;
      const volatile double product = share * (high - low);
      const double want = std::clamp(low + product, low, high);
      EXPECT_EQ(got[k], want) << i + k;
      others += std::fma(share, high - low, low) != want;
    }
  }
  EXPECT_GT(others, 10);
}

TEST(ActionDiscretizerTest, BadOptionsAreNamed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const LeafSpec& bad :
       {LeafSpec::Unbounded(DType::kFloat32, {1}),
        LeafSpec::Bounded(DType::kInt64, {1}, 0, 1),
        LeafSpec::Bounded(DType::kFloat32, {1}, 0, kInfinity),
        LeafSpec::Bounded(DType::kFloat32, {1}, 1, 0)}) {
    EXPECT_THAT(ActionDiscretizer::Create({.spec = bad, .num_intervals = {2}}),
                StatusIs(kInvalidArgument, HasSubstr("spec")));
  }
  for (const std::vector<int64_t>& bad :
       std::vector<std::vector<int64_t>>{{}, {0}, {2, -1}, {1, 2, 3}}) {
    EXPECT_THAT(
        ActionDiscretizer::Create({.spec = Pair(), .num_intervals = bad}),
        StatusIs(kInvalidArgument, HasSubstr("num_intervals")));
  }
  EXPECT_THAT(ActionDiscretizer::Create(
                  {.spec = LeafSpec::Bounded(DType::kFloat32, {0}, 0, 1),
                   .num_intervals = {2}}),
              StatusIs(kInvalidArgument));
}

TEST(ActionDiscretizerTest, AnotherActionOfTheEnvironmentIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto discretizer,
      ActionDiscretizer::Create({.spec = Pair(), .num_intervals = {2}}));
  EXPECT_THAT(discretizer->PlanSteps(TedSpec()).status(),
              StatusIs(kInvalidArgument, HasSubstr("action_spec()")));
}

TEST(ActionDiscretizerTest, WrongChoicesNameTheLane) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto discretizer,
      ActionDiscretizer::Create({.spec = Pair(), .num_intervals = {2}}));
  int64_t chosen[] = {0, 1, 0, 2};
  float made[4] = {};
  TensorDict state;
  const BoundLeaf from = {.data = reinterpret_cast<std::byte*>(chosen),
                          .width = 16,
                          .dtype = DType::kInt64,
                          .rows = 2,
                          .shape = {2}};
  const BoundLeaf to = {.data = reinterpret_cast<std::byte*>(made),
                        .width = 8,
                        .rows = 2,
                        .shape = {2}};
  EXPECT_THAT(discretizer->OnAction({from, to}, &state),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("lane 1"), HasSubstr("[0, 1]"))));
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(Categorical,
                                       UnderTest({.spec = Pair(),
                                                  .num_intervals = {5, 4}}));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(OneHotAndRandom,
                                       UnderTest({.spec = Pair(DType::kFloat64),
                                                  .num_intervals = {3},
                                                  .sampling = Sampling::kRandom,
                                                  .categorical = false}));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    DiscreteGrid,
    UnderTest({.spec = LeafSpec::Bounded(DType::kFloat32, {2, 3}, -1, 1),
               .num_intervals = {2, 3, 4},
               .categorical = false}));

}  // namespace rill
