// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/value_estimates.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/instruction_sets.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor Numbers(DType dtype, const Shape& shape,
               const std::vector<double>& values) {
  return *Cast(*Tensor::From<double>(values, shape), dtype);
}

std::vector<double> Values(const Tensor& tensor) {
  const Tensor wide = *Cast(*tensor.Contiguous(), DType::kFloat64);
  const double* data = wide.data<double>();
  return std::vector<double>(data, data + wide.num_elements());
}

void ExpectNear(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> values = Values(got);
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(values[i], want[i], 1e-6 * std::max(1.0, std::abs(want[i])))
        << i;
  }
}

// Steps as plain numbers, one line after another.
struct Plain {
  int64_t steps = 0;
  std::vector<double> reward, value, next_value, log_pi, log_mu;
  std::vector<bool> done, terminated;

  bool IsEnd(size_t i) const {
    return done[i] || static_cast<int64_t>(i + 1) % steps == 0;
  }
  double Bootstrap(size_t i) const { return terminated[i] ? 0 : next_value[i]; }
};

EstimatorSteps StepsOf(const Plain& plain, DType dtype, const Shape& shape) {
  return {.reward = Numbers(dtype, shape, plain.reward),
          .value = Numbers(dtype, shape, plain.value),
          .next_value = Numbers(dtype, shape, plain.next_value),
          .done = *Tensor::From<bool>(plain.done, shape),
          .terminated = *Tensor::From<bool>(plain.terminated, shape)};
}

// Numbers that float32 holds, so that one reference serves both dtypes. Flags
// come in any pattern: terminated without done, too.
Plain RandomSteps(const Shape& shape, int64_t steps, uint64_t seed) {
  const Rng rng(seed, RngStream::kUser);
  Plain plain;
  plain.steps = steps;
  uint32_t draw = 0;
  const auto number = [&] {
    return static_cast<double>(
        static_cast<float>(4 * rng.UniformDouble(0, draw++) - 2));
  };
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    plain.reward.push_back(number());
    plain.value.push_back(number());
    plain.next_value.push_back(number());
    plain.log_pi.push_back(number());
    plain.log_mu.push_back(number());
    plain.done.push_back(rng.UniformInt(1, draw++, 8) == 0);
    plain.terminated.push_back(rng.UniformInt(1, draw++, 8) == 0);
  }
  return plain;
}

std::vector<double> LambdaReference(const Plain& p, double gamma,
                                    double lmbda) {
  std::vector<double> g(p.reward.size());
  for (size_t i = g.size(); i-- > 0;) {
    const double behind = p.IsEnd(i)
                              ? p.Bootstrap(i)
                              : (1 - lmbda) * p.Bootstrap(i) + lmbda * g[i + 1];
    g[i] = p.reward[i] + gamma * behind;
  }
  return g;
}

std::vector<double> GaeReference(const Plain& p, double gamma, double lmbda) {
  std::vector<double> a(p.reward.size());
  for (size_t i = a.size(); i-- > 0;) {
    a[i] = p.reward[i] + gamma * p.Bootstrap(i) - p.value[i];
    if (!p.IsEnd(i)) a[i] += gamma * lmbda * a[i + 1];
  }
  return a;
}

std::vector<double> Plus(std::vector<double> a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// Each shape, and its steps of a line.
const std::vector<std::pair<Shape, int64_t>>& Shapes() {
  static const auto& shapes = *new std::vector<std::pair<Shape, int64_t>>{
      {{7}, 7},       {{1, 1}, 1},       {{5, 1}, 5},         {{3, 5, 1}, 5},
      {{9, 1, 1}, 1}, {{2, 3, 4, 1}, 4}, {{17, 131, 1}, 131}, {{8, 300}, 300},
      {{0, 1}, 0},    {{3, 0, 1}, 0},    {{0, 3, 1}, 3}};
  return shapes;
}

// Runs `check` with random steps of each shape and dtype.
void ForRandomSteps(
    const std::function<void(const Plain&, const EstimatorSteps&)>& check) {
  uint64_t seed = 0;
  for (const auto& [shape, steps] : Shapes()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(shape.ToString());
      const Plain plain = RandomSteps(shape, steps, ++seed);
      check(plain, StepsOf(plain, dtype, shape));
    }
  }
}

// T1 and T2 of TorchRL's behaviours.
Plain ThreeSteps(bool is_terminated) {
  return {.steps = 3,
          .reward = {1, 0, 2},
          .value = {.5, 1, 1.5},
          .next_value = {1, 1.5, 2},
          .log_pi = {},
          .log_mu = {},
          .done = {false, false, is_terminated},
          .terminated = {false, false, is_terminated}};
}

TEST(ValueEstimatesTest, Example) {
  const EstimatorSteps steps =
      StepsOf(ThreeSteps(false), DType::kFloat32, {3, 1});
  Advantages made;
  RILL_ASSERT_OK(GaeAdvantage(steps, 0.99, 0.95, &made));
  EXPECT_EQ(made.advantage.shape(), Shape({3, 1}));
}

TEST(ValueEstimatesTest, T1_Gae) {
  Advantages made;
  RILL_ASSERT_OK(GaeAdvantage(
      StepsOf(ThreeSteps(false), DType::kFloat64, {3, 1}), .99, .95, &made));
  ExpectNear(made.advantage, {4.13980202, 2.81744, 2.48});
  ExpectNear(made.value_target, {4.63980202, 3.81744, 3.98});
  RILL_ASSERT_OK(GaeAdvantage(
      StepsOf(ThreeSteps(true), DType::kFloat64, {3, 1}), .99, .95, &made));
  ExpectNear(made.advantage, {2.388412625, .95525, .5});
}

TEST(ValueEstimatesTest, T2_ReturnsAndRewardToGo) {
  Tensor made;
  RILL_ASSERT_OK(
      Td0Return(StepsOf(ThreeSteps(true), DType::kFloat64, {3, 1}), .9, &made));
  ExpectNear(made, {1.9, 1.35, 2.0});
  const EstimatorSteps open =
      StepsOf(ThreeSteps(false), DType::kFloat64, {3, 1});
  RILL_ASSERT_OK(Td1Return(open, .9, &made));
  ExpectNear(made, {4.078, 3.42, 3.8});
  RILL_ASSERT_OK(RewardToGo(open.reward, open.done, .5, &made));
  ExpectNear(made, {1.5, 1, 2});
}

TEST(ValueEstimatesTest, ReturnsAgreeWithTheirRecursions) {
  ForEachTarget([] {
    ForRandomSteps([](const Plain& plain, const EstimatorSteps& steps) {
      Tensor made;
      RILL_ASSERT_OK(Td0Return(steps, .9, &made));
      ExpectNear(made, LambdaReference(plain, .9, 0));
      RILL_ASSERT_OK(Td1Return(steps, .99, &made));
      ExpectNear(made, LambdaReference(plain, .99, 1));
      RILL_ASSERT_OK(TdLambdaReturn(steps, .99, .9, &made));
      ExpectNear(made, LambdaReference(plain, .99, .9));
      RILL_ASSERT_OK(RewardToGo(steps.reward, steps.done, .97, &made));
      Plain rewards = plain;
      rewards.terminated.assign(plain.done.size(), true);
      ExpectNear(made, LambdaReference(rewards, .97, 1));
    });
  });
}

TEST(ValueEstimatesTest, GaeAgreesWithItsRecursion) {
  ForEachTarget([] {
    ForRandomSteps([](const Plain& plain, const EstimatorSteps& steps) {
      Advantages made;
      RILL_ASSERT_OK(GaeAdvantage(steps, .99, .95, &made));
      const std::vector<double> want = GaeReference(plain, .99, .95);
      ExpectNear(made.advantage, want);
      ExpectNear(made.value_target, Plus(want, plain.value));
    });
  });
}

TEST(ValueEstimatesTest, VTraceAgreesWithItsRecursion) {
  ForRandomSteps([](const Plain& p, const EstimatorSteps& steps) {
    const Shape& shape = steps.reward.shape();
    const DType dtype = steps.reward.dtype();
    Advantages made;
    RILL_ASSERT_OK(VTraceAdvantage(
        steps, Numbers(dtype, shape, p.log_pi), Numbers(dtype, shape, p.log_mu),
        {.gamma = .95, .rho_thresh = 1.5, .c_thresh = 1.1}, &made));
    std::vector<double> target(p.reward.size());
    std::vector<double> advantage(p.reward.size());
    for (size_t i = target.size(); i-- > 0;) {
      const double ratio = std::exp(p.log_pi[i] - p.log_mu[i]);
      const double rho = std::min(1.5, ratio);
      target[i] =
          p.value[i] + rho * (p.reward[i] + .95 * p.Bootstrap(i) - p.value[i]);
      double behind = p.Bootstrap(i);
      if (!p.IsEnd(i)) {
        target[i] +=
            .95 * std::min(1.1, ratio) * (target[i + 1] - p.value[i + 1]);
        if (!p.terminated[i]) behind = target[i + 1];
      }
      advantage[i] = rho * (p.reward[i] + .95 * behind - p.value[i]);
    }
    ExpectNear(made.value_target, target);
    ExpectNear(made.advantage, advantage);
  });
}

TEST(ValueEstimatesTest, NStepReturnsAgreeWithTheirDefinition) {
  ForRandomSteps([](const Plain& p, const EstimatorSteps& steps) {
    for (const int64_t n : {1, 3, 1000}) {
      Tensor made;
      RILL_ASSERT_OK(NStepReturn(steps, n, .9, &made));
      std::vector<double> want(p.reward.size());
      for (size_t i = 0; i < want.size(); ++i) {
        size_t last = i;
        while (!p.IsEnd(last) && static_cast<int64_t>(last - i) + 1 < n) {
          ++last;
        }
        want[i] = p.Bootstrap(last);
        for (size_t j = last + 1; j-- > i;)
          want[i] = p.reward[j] + .9 * want[i];
      }
      ExpectNear(made, want);
    }
  });
}

TEST(ValueEstimatesTest, WhatAFlagCutsOffMayBeNaN) {
  Plain plain = ThreeSteps(false);
  plain.terminated[1] = plain.done[1] = true;
  plain.next_value[1] = kNaN;
  plain.reward[2] = kNaN;
  const EstimatorSteps steps = StepsOf(plain, DType::kFloat32, {1, 3, 1});
  Advantages made;
  RILL_ASSERT_OK(GaeAdvantage(steps, 1, 1, &made));
  EXPECT_EQ(made.advantage.data<float>()[1], -1);
  EXPECT_EQ(made.advantage.data<float>()[0], .5f);
  Tensor returns;
  for (const double lmbda : {0.0, .5, 1.0}) {
    RILL_ASSERT_OK(TdLambdaReturn(steps, 1, lmbda, &returns));
    EXPECT_EQ(returns.data<float>()[1], 0);
    EXPECT_FALSE(std::isnan(returns.data<float>()[0]));
  }
}

TEST(ValueEstimatesTest, ResultsThatFitAreWrittenInPlace) {
  const EstimatorSteps steps =
      StepsOf(ThreeSteps(false), DType::kFloat32, {3, 1});
  Advantages made;
  RILL_ASSERT_OK(GaeAdvantage(steps, 1, 1, &made));
  const float* const advantage = made.advantage.data<float>();
  const float* const target = made.value_target.data<float>();
  const Tensor held = made.advantage;
  RILL_ASSERT_OK(GaeAdvantage(steps, .5, 1, &made));
  EXPECT_EQ(made.advantage.data<float>(), advantage);
  EXPECT_EQ(made.value_target.data<float>(), target);
  // Another shape or dtype is made anew.
  RILL_ASSERT_OK(GaeAdvantage(
      StepsOf(ThreeSteps(false), DType::kFloat64, {3, 1}), 1, 1, &made));
  EXPECT_EQ(made.advantage.dtype(), DType::kFloat64);
}

TEST(ValueEstimatesTest, StridedTensorsAreRead) {
  const Plain plain = RandomSteps({4, 6, 1}, 6, 3);
  EstimatorSteps steps = StepsOf(plain, DType::kFloat32, {4, 6, 1});
  Tensor want;
  RILL_ASSERT_OK(Td1Return(steps, .9, &want));
  // Time first in memory.
  for (Tensor* tensor :
       {&steps.reward, &steps.next_value, &steps.done, &steps.terminated}) {
    *tensor = *tensor->Permute({1, 0, 2})->Clone()->Permute({1, 0, 2});
    ASSERT_FALSE(tensor->is_contiguous());
  }
  Tensor made;
  RILL_ASSERT_OK(Td1Return(steps, .9, &made));
  EXPECT_EQ(Values(made), Values(want));
}

TEST(ValueEstimatesTest, ErrorsNameWhatIsWrongAndLeaveResults) {
  const EstimatorSteps good =
      StepsOf(ThreeSteps(false), DType::kFloat32, {3, 1});
  Tensor made;
  EXPECT_THAT(Td0Return(good, 1.5, &made),
              StatusIs(kInvalidArgument, HasSubstr("gamma: got 1.5")));
  EXPECT_THAT(Td1Return(good, kNaN, &made),
              StatusIs(kInvalidArgument, HasSubstr("gamma: got nan")));
  EXPECT_THAT(TdLambdaReturn(good, 1, -1, &made),
              StatusIs(kInvalidArgument, HasSubstr("lmbda: got -1")));
  EXPECT_THAT(NStepReturn(good, 0, 1, &made),
              StatusIs(kInvalidArgument, HasSubstr("n_steps: got 0")));
  EXPECT_THAT(RewardToGo(Tensor(), good.done, 1, &made),
              StatusIs(kInvalidArgument, HasSubstr("done: got bool[3, 1]")));
  EXPECT_THAT(RewardToGo(good.done, good.done, 1, &made),
              StatusIs(kInvalidArgument, HasSubstr("reward: got bool")));
  EstimatorSteps bad = good;
  bad.terminated = good.reward;
  EXPECT_THAT(Td0Return(bad, 1, &made),
              StatusIs(kInvalidArgument, HasSubstr("terminated: got float32")));
  bad = good;
  bad.next_value = *good.next_value.Reshape({3});
  EXPECT_THAT(Td0Return(bad, 1, &made),
              StatusIs(kInvalidArgument,
                       HasSubstr("next_value: got float32[3], want float32[3, "
                                 "1], as the reward says; Unsqueeze")));
  EXPECT_FALSE(made.is_valid());
  bad = good;
  bad.value = *Cast(good.value, DType::kFloat64);
  Advantages out;
  EXPECT_THAT(GaeAdvantage(bad, 1, 1, &out),
              StatusIs(kInvalidArgument, HasSubstr("value: got float64")));
  EXPECT_THAT(VTraceAdvantage(good, good.reward, good.done, {}, &out),
              StatusIs(kInvalidArgument, HasSubstr("log_mu: got bool")));
  EXPECT_THAT(
      VTraceAdvantage(good, good.reward, good.reward, {.c_thresh = 0}, &out),
      StatusIs(kInvalidArgument, HasSubstr("c_thresh: got 0")));
}

}  // namespace
}  // namespace rill
