// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/learning/adam.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::learning {
namespace {

using ::testing::Each;
using ::testing::FloatEq;

constexpr int64_t kSize = 37;  // Not a multiple of any vector width.

std::vector<float> Gradient(int64_t step) {
  const Rng rng(1);
  std::vector<float> gradient(kSize);
  for (int64_t i = 0; i < kSize; ++i) {
    gradient[i] = 2 * rng.UniformFloat(step, i) - 1;
  }
  return gradient;
}

// Algorithm 1 of the paper in double, with clipping written out.
class SlowAdam {
 public:
  explicit SlowAdam(const Adam::Options& options) : options_(options) {}

  void Step(double rate, const std::vector<float>& gradient,
            std::vector<double>& parameters) {
    double norm = 0;
    for (float g : gradient) norm += static_cast<double>(g) * g;
    norm = std::sqrt(norm);
    const double clip = std::min(1.0, options_.max_gradient_norm / norm);
    ++t_;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double g = gradient[i] * clip;
      m_[i] = options_.beta1 * m_[i] + (1 - options_.beta1) * g;
      v_[i] = options_.beta2 * v_[i] + (1 - options_.beta2) * g * g;
      const double m_hat = m_[i] / (1 - std::pow(options_.beta1, t_));
      const double v_hat = v_[i] / (1 - std::pow(options_.beta2, t_));
      parameters[i] -= rate * m_hat / (std::sqrt(v_hat) + options_.epsilon);
    }
  }

 private:
  Adam::Options options_;
  double t_ = 0;
  std::vector<double> m_ = std::vector<double>(kSize);
  std::vector<double> v_ = std::vector<double>(kSize);
};

TEST(AdamTest, AgreesWithThePaperInDouble) {
  for (double max_norm : {0.5, 1000.0}) {
    const Adam::Options options = {.max_gradient_norm = max_norm};
    Adam adam(kSize, options);
    SlowAdam slow(options);
    std::vector<float> parameters(kSize, 1.0f);
    std::vector<double> expected(kSize, 1.0);
    for (int64_t step = 0; step < 200; ++step) {
      adam.Step(0.01, Gradient(step), absl::MakeSpan(parameters));
      slow.Step(0.01, Gradient(step), expected);
    }
    // 200 steps of at most 0.01 each, each right to a few float roundings.
    for (int64_t i = 0; i < kSize; ++i) {
      EXPECT_NEAR(parameters[i], expected[i], 200 * 1e-6) << i;
    }
  }
}

TEST(AdamTest, StepReturnsTheNormBeforeClipping) {
  Adam adam(2, {.max_gradient_norm = 1});
  std::vector<float> parameters(2);
  EXPECT_DOUBLE_EQ(adam.Step(0.1, {3.0f, 4.0f}, absl::MakeSpan(parameters)), 5);
  EXPECT_EQ(adam.step_count(), 1);
}

TEST(AdamTest, GradientThatIsNotFiniteChangesNothing) {
  Adam adam(2, {});
  std::vector<float> parameters(2, 1.0f);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(
      std::isnan(adam.Step(0.1, {1.0f, nan}, absl::MakeSpan(parameters))));
  EXPECT_EQ(adam.step_count(), 0);
  EXPECT_THAT(parameters, Each(FloatEq(1)));
  EXPECT_THAT(adam.first_moment(), Each(FloatEq(0)));
  EXPECT_THAT(adam.second_moment(), Each(FloatEq(0)));
}

TEST(AdamTest, RestoredStateGoesOnBitForBit) {
  Adam adam(kSize, {});
  std::vector<float> parameters(kSize);
  for (int64_t step = 0; step < 5; ++step) {
    adam.Step(0.01, Gradient(step), absl::MakeSpan(parameters));
  }
  Adam restored(kSize, {});
  std::vector<float> copy = parameters;
  std::copy(adam.first_moment().begin(), adam.first_moment().end(),
            restored.first_moment().begin());
  std::copy(adam.second_moment().begin(), adam.second_moment().end(),
            restored.second_moment().begin());
  restored.set_step_count(adam.step_count());
  for (int64_t step = 5; step < 10; ++step) {
    adam.Step(0.01, Gradient(step), absl::MakeSpan(parameters));
    restored.Step(0.01, Gradient(step), absl::MakeSpan(copy));
  }
  EXPECT_EQ(copy, parameters);
}

}  // namespace
}  // namespace rill::learning
