// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/action_head.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::ppo {
namespace {

using ::testing::ElementsAre;

constexpr ActionKind kDiscrete = {.is_discrete = true, .size = 3};
constexpr ActionKind kReal = {.is_discrete = false, .size = 2};

TEST(ActionHeadTest, CategoricalTermsAreThoseOfSoftmax) {
  // Softmax of these logits is (1/6, 2/6, 3/6); a constant changes nothing.
  for (double shift : {0.0, 800.0, -800.0}) {
    const std::vector<double> logits = {
        shift + std::log(1), shift + std::log(2), shift + std::log(3)};
    const ActionTerms terms =
        EvaluateAction<double>(kDiscrete, logits, {}, {2.0});
    EXPECT_NEAR(terms.log_prob, std::log(0.5), 1e-12);
    EXPECT_NEAR(terms.entropy,
                std::log(6) / 6 + std::log(3) / 3 + std::log(2) / 2, 1e-12);
  }
}

TEST(ActionHeadTest, GaussianTermsAreThoseOfItsDensity) {
  const double sigma = 0.5;
  const ActionTerms terms = EvaluateAction<double>(
      kReal, {1.0, -1.0}, {std::log(sigma), 0.0}, {2.0, -1.0});
  const double root = std::sqrt(2 * std::numbers::pi);
  EXPECT_NEAR(terms.log_prob,
              std::log(std::exp(-2.0) / (sigma * root)) + std::log(1 / root),
              1e-12);
  EXPECT_NEAR(terms.entropy,
              1 + std::log(2 * std::numbers::pi) + std::log(sigma), 1e-12);
}

TEST(ActionHeadTest, SamplesFollowTheCategorical) {
  const std::vector<float> logits = {std::log(1.f), std::log(2.f),
                                     std::log(3.f)};
  const Rng rng(5);
  constexpr int kDraws = 6000;
  std::vector<int> counts(3);
  for (int i = 0; i < kDraws; ++i) {
    float action = -1;
    SampleAction(kDiscrete, logits, {}, rng, i, 0, absl::MakeSpan(&action, 1));
    ++counts[static_cast<int>(action)];
  }
  double chi_square = 0;
  for (int j = 0; j < 3; ++j) {
    const double expected = kDraws * (j + 1) / 6.0;
    chi_square += (counts[j] - expected) * (counts[j] - expected) / expected;
  }
  EXPECT_LT(chi_square, 13.8);  // Two degrees of freedom: one seed in 1,000.
}

TEST(ActionHeadTest, SamplesFollowTheGaussian) {
  const std::vector<float> mean = {1, -2}, log_std = {std::log(0.5f), 0};
  const Rng rng(6);
  constexpr int kDraws = 10'000;
  double sum[2] = {}, squares[2] = {}, product = 0;
  for (int i = 0; i < kDraws; ++i) {
    float action[2];
    SampleAction(kReal, mean, log_std, rng, i, 0, absl::MakeSpan(action));
    double z[2];
    for (int j = 0; j < 2; ++j) {
      z[j] = (action[j] - mean[j]) / std::exp(log_std[j]);
      sum[j] += z[j] / kDraws;
      squares[j] += z[j] * z[j] / kDraws;
    }
    product += z[0] * z[1] / kDraws;
  }
  // Four standard errors: 1 / sqrt(n), of squares sqrt(2 / n).
  for (int j = 0; j < 2; ++j) {
    EXPECT_NEAR(sum[j], 0, 0.04);
    EXPECT_NEAR(squares[j], 1, 0.057);
  }
  EXPECT_NEAR(product, 0, 0.04);
}

TEST(ActionHeadTest, BestActionIsTheLikeliest) {
  float number = -1;
  BestAction(kDiscrete, {0.f, 2.f, 1.f}, absl::MakeSpan(&number, 1));
  EXPECT_EQ(number, 1);
  BestAction(kDiscrete, {2.f, 2.f, 1.f}, absl::MakeSpan(&number, 1));
  EXPECT_EQ(number, 0);
  std::vector<float> action(2);
  BestAction(kReal, {3.f, -4.f}, absl::MakeSpan(action));
  EXPECT_THAT(action, ElementsAre(3, -4));
}

}  // namespace
}  // namespace rill::ppo
