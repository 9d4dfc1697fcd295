// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/learner/gru_actor_critic.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/central_differences.h"

namespace rill::ppo_recurrent {
namespace {

using ::testing::Each;

constexpr int64_t kInputs = 3, kUnits = 16, kActions = 4;
constexpr int64_t kSequences = 3, kLength = 6, kSteps = kSequences * kLength;

// Three sequences of six steps: an episode begins within the second, and the
// third has two steps of padding.
class GruActorCriticTest : public ::testing::Test {
 protected:
  GruActorCriticTest() : networks_(kInputs, kUnits, kActions) {
    networks_.Initialize(Rng(1, RngStream::kInit));
    // Heads that prefer something.
    uint32_t draw = 0;
    const auto centred = [&draw] {
      return 2 * Rng(2, RngStream::kUser).UniformDouble(0, draw++) - 1;
    };
    for (double& p : networks_.parameters()) p += centred() / 3;
    for (int64_t i = 0; i < kSteps; ++i) {
      for (int64_t k = 0; k < kInputs; ++k) observation_.push_back(centred());
      for (int64_t a = 0; a < kActions; ++a) {
        legal_[i * kActions + a] = (i + a) % 3 != 0;
      }
      action_.push_back((i + 1) % 3 == 0 ? (i + 2) % 3 == 0 ? 3 : 1 : 0);
      // A legal one.
      while (!legal_[i * kActions + action_[i]]) {
        action_[i] = (action_[i] + 1) % kActions;
      }
      log_prob_.push_back(-1 + centred() / 2);
      value_.push_back(centred());
      advantage_.push_back(centred());
      target_.push_back(centred());
      init_[i] = i == kLength + 3;
      valid_[i] = i < kSteps - 2;
    }
    for (int64_t i = 0; i < kSequences * kUnits; ++i) {
      hidden_.push_back(centred());
    }
  }

  SequenceBatch<double> Batch() const {
    return {.sequences = kSequences,
            .length = kLength,
            .observation = observation_,
            .hidden = hidden_,
            .is_init = absl::MakeConstSpan(init_, kSteps),
            .is_legal = absl::MakeConstSpan(legal_, kSteps * kActions),
            .action = action_,
            .log_prob = log_prob_,
            .value = value_,
            .advantage = advantage_,
            .value_target = target_,
            .is_valid = absl::MakeConstSpan(valid_, kSteps)};
  }

  double Loss(std::vector<double>* gradient) {
    gradient->resize(networks_.parameters().size());
    return networks_
        .Loss(Batch(),
              {.clip = 0.3,
               .value_coefficient = 0.7,
               .entropy_coefficient = 0.05},
              absl::MakeSpan(*gradient))
        .loss;
  }

  GruActorCritic<double> networks_;
  std::vector<double> observation_, hidden_, log_prob_, value_, advantage_,
      target_;
  std::vector<int64_t> action_;
  bool init_[kSteps], valid_[kSteps], legal_[kSteps * kActions];
};

TEST_F(GruActorCriticTest, TheGradientIsThatOfCentralDifferences) {
  std::vector<double> gradient, unused;
  Loss(&gradient);
  learning::ExpectGradientOf([&] { return Loss(&unused); },
                             networks_.parameters(), gradient);
}

TEST_F(GruActorCriticTest, PaddingCountsNowhere) {
  std::vector<double> gradient, changed;
  const double loss = Loss(&gradient);
  for (int64_t i = kSteps - 2; i < kSteps; ++i) {
    observation_[i * kInputs] = 100;
    advantage_[i] = value_[i] = target_[i] = -50;
    action_[i] = 0;
  }
  EXPECT_EQ(Loss(&changed), loss);
  EXPECT_EQ(changed, gradient);
}

TEST_F(GruActorCriticTest, AnEpisodeKnowsNothingOfTheOneBeforeIt) {
  std::vector<double> logits(kActions), value(1), next(kUnits);
  std::vector<double> gradient;
  const double loss = Loss(&gradient);
  // The state before the second sequence's first step matters up to its reset:
  // with no step before that, it does not.
  std::fill_n(init_ + kLength, 1, true);
  const double without = Loss(&gradient);
  hidden_[kUnits] += 10;
  EXPECT_EQ(Loss(&gradient), without);
  EXPECT_NE(loss, without);
}

// Acting step by step gives what the loss sees: the ratio of an unchanged
// network is 1.
TEST_F(GruActorCriticTest, StepsOfAPolicyAreThoseOfTheLoss) {
  std::vector<double> hidden(kUnits), logits(kActions), value(1);
  for (int64_t s = 0; s < kSequences; ++s) {
    hidden.assign(hidden_.begin() + s * kUnits,
                  hidden_.begin() + (s + 1) * kUnits);
    for (int64_t t = 0; t < kLength; ++t) {
      const int64_t row = s * kLength + t;
      if (init_[row]) hidden.assign(kUnits, 0);
      std::vector<double> next(kUnits);
      networks_.Step(
          absl::MakeConstSpan(observation_).subspan(row * kInputs, kInputs),
          hidden,
          absl::MakeConstSpan(legal_, kSteps * kActions)
              .subspan(row * kActions, kActions),
          absl::MakeSpan(logits), absl::MakeSpan(value), absl::MakeSpan(next));
      const double action[] = {static_cast<double>(action_[row])};
      log_prob_[row] =
          ppo::EvaluateAction<double>(networks_.kind(), logits, {}, action)
              .log_prob;
      value_[row] = target_[row] = value[0];
      hidden = next;
    }
  }
  std::vector<double> gradient(networks_.parameters().size());
  const ppo::PpoStats stats =
      networks_.Loss(Batch(), {}, absl::MakeSpan(gradient));
  EXPECT_NEAR(stats.approx_kl, 0, 1e-14);
  EXPECT_NEAR(stats.value_loss, 0, 1e-14);
  EXPECT_EQ(stats.clip_fraction, 0);
}

TEST_F(GruActorCriticTest, AnActionThatIsNotLegalHasNoProbability) {
  std::vector<double> logits(kActions), value(1), next(kUnits);
  const bool legal[] = {true, false, true, false};
  networks_.Step(absl::MakeConstSpan(observation_).first(kInputs),
                 absl::MakeConstSpan(hidden_).first(kUnits), legal,
                 absl::MakeSpan(logits), absl::MakeSpan(value),
                 absl::MakeSpan(next));
  for (uint64_t draw = 0; draw < 200; ++draw) {
    float action;
    const std::vector<float> outputs(logits.begin(), logits.end());
    ppo::SampleAction(networks_.kind(), outputs, {}, Rng(3, RngStream::kPolicy),
                      draw, 0, absl::MakeSpan(&action, 1));
    EXPECT_TRUE(legal[static_cast<int>(action)]) << action;
  }
}

TEST_F(GruActorCriticTest, EqualCallsGiveEqualBits) {
  std::vector<double> first, second;
  EXPECT_EQ(Loss(&first), Loss(&second));
  EXPECT_EQ(first, second);
  EXPECT_THAT(first, ::testing::Not(Each(0.0)));
}

}  // namespace
}  // namespace rill::ppo_recurrent
