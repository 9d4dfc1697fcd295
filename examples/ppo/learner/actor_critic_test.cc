// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/actor_critic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/learning/central_differences.h"
#include "rill/examples/ppo/learner/action_head.h"

namespace rill::ppo {
namespace {

constexpr int64_t kInputs = 3, kBatch = 12;

struct OwnedBatch {
  std::vector<double> observation, action, log_prob, value, advantage, target;

  PpoBatch<double> view() const {
    return {.observation = observation,
            .action = action,
            .log_prob = log_prob,
            .value = value,
            .advantage = advantage,
            .value_target = target};
  }
};

// Networks away from their beginning, and steps on all sides of both clips.
class ActorCriticTest : public ::testing::TestWithParam<ActionKind> {
 protected:
  ActorCriticTest() : networks_(kInputs, GetParam(), kBatch) {
    networks_.Initialize(Rng(1));
    uint64_t draw = 0;
    const auto centred = [&] {
      return 2 * Rng(2).UniformDouble(draw++, 0) - 1;
    };
    for (double& p : networks_.parameters()) p += centred() / 10;
    const ActionKind& kind = GetParam();
    for (int64_t i = 0; i < kBatch; ++i) {
      for (int64_t k = 0; k < kInputs; ++k) {
        batch_.observation.push_back(centred());
      }
      for (int64_t k = 0; k < kind.action_size(); ++k) {
        batch_.action.push_back(kind.is_discrete ? (i + k) % kind.size
                                                 : 2 * centred());
      }
      batch_.advantage.push_back(centred());
    }
    std::vector<double> output(kBatch * kind.size);
    networks_.Act(batch_.observation, absl::MakeSpan(output));
    batch_.value.resize(kBatch);
    networks_.Values(batch_.observation, absl::MakeSpan(batch_.value));
    for (int64_t i = 0; i < kBatch; ++i) {
      const double now =
          EvaluateAction<double>(
              kind,
              absl::MakeConstSpan(output).subspan(i * kind.size, kind.size),
              networks_.log_std(),
              absl::MakeConstSpan(batch_.action)
                  .subspan(i * kind.action_size(), kind.action_size()))
              .log_prob;
      // Ratios of about 0.67, 1 and 1.5; values that moved by 0.5, 0, -0.5.
      const double side = static_cast<double>(i % 3) - 1;
      batch_.log_prob.push_back(now - 0.4 * side);
      batch_.value[i] += 0.5 * (static_cast<double>(i / 3 % 3) - 1);
      batch_.target.push_back(batch_.value[i] + centred());
    }
  }

  PpoStats Loss(const PpoLossOptions& options) {
    gradient_.resize(networks_.parameters().size());
    return networks_.Loss(batch_.view(), options, absl::MakeSpan(gradient_));
  }

  ActorCritic<double> networks_;
  OwnedBatch batch_;
  learning::AlignedVector<double> gradient_;
};

TEST_P(ActorCriticTest, GradientAgreesWithCentralDifferences) {
  for (bool clip_value_loss : {true, false}) {
    const PpoLossOptions options = {.value_coefficient = 0.7,
                                    .entropy_coefficient = 0.3,
                                    .clip_value_loss = clip_value_loss};
    const PpoStats stats = Loss(options);
    // Both sides of the clip were met, else this test shows less than it says.
    EXPECT_GT(stats.clip_fraction, 0.3);
    EXPECT_LT(stats.clip_fraction, 0.9);
    const learning::AlignedVector<double> gradient = gradient_;
    const auto loss = [&] { return Loss(options).loss; };
    const absl::Span<double> parameters = networks_.parameters();
    // All of the actor's last layer and log_std, every 31st of the rest: 31 and
    // 64 share no divisor, so each row and column is met.
    const size_t begin = parameters.size() / 2 - 200;
    learning::ExpectGradientOf(
        loss, parameters.subspan(begin, 250),
        absl::MakeConstSpan(gradient).subspan(begin, 250));
    learning::ExpectGradientOf(loss, parameters, gradient, {.stride = 31});
  }
}

TEST_P(ActorCriticTest, LossAgreesWithTheFormula) {
  const PpoLossOptions options = {.entropy_coefficient = 0.1};
  const PpoStats stats = Loss(options);
  double mean = 0, squares = 0;
  for (double a : batch_.advantage) mean += a / kBatch;
  for (double a : batch_.advantage) squares += (a - mean) * (a - mean);
  const double deviation = std::sqrt(squares / (kBatch - 1));
  std::vector<double> value(kBatch);
  networks_.Values(batch_.observation, absl::MakeSpan(value));
  double policy_loss = 0, value_loss = 0;
  for (int64_t i = 0; i < kBatch; ++i) {
    const double a = (batch_.advantage[i] - mean) / deviation;
    const double r = std::exp(0.4 * (static_cast<double>(i % 3) - 1));
    policy_loss += std::max(-a * r, -a * std::clamp(r, 0.8, 1.2)) / kBatch;
    const double old = batch_.value[i], target = batch_.target[i];
    const double clipped = old + std::clamp(value[i] - old, -0.2, 0.2);
    value_loss +=
        0.5 / kBatch *
        std::max(std::pow(value[i] - target, 2), std::pow(clipped - target, 2));
  }
  EXPECT_NEAR(stats.policy_loss, policy_loss, 1e-7);
  EXPECT_NEAR(stats.value_loss, value_loss, 1e-12);
  EXPECT_NEAR(stats.clip_fraction, 8.0 / 12, 1e-12);
  EXPECT_NEAR(stats.loss,
              stats.policy_loss + 0.5 * stats.value_loss - 0.1 * stats.entropy,
              1e-12);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ActorCriticTest,
    ::testing::Values(ActionKind{.is_discrete = true, .size = 3},
                      ActionKind{.is_discrete = false, .size = 2}),
    [](const auto& info) {
      return std::string(info.param.is_discrete ? "Discrete" : "Real");
    });

}  // namespace
}  // namespace rill::ppo
