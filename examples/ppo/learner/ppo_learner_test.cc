// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/ppo_learner.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/ppo/learner/action_head.h"
#include "rill/examples/ppo/learner/actor_critic.h"

namespace rill::ppo {
namespace {

constexpr int64_t kSteps = 64;

// A bandit with one state: action 1 has the advantage 1, action 0 has -1.
struct Bandit {
  std::vector<float> observation = std::vector<float>(kSteps, 1);
  std::vector<float> action, log_prob, value, advantage, target;

  PpoBatch<float> view() const {
    return {.observation = observation,
            .action = action,
            .log_prob = log_prob,
            .value = value,
            .advantage = advantage,
            .value_target = target};
  }
};

Bandit Play(PpoLearner& learner) {
  Bandit bandit;
  ActorCritic<float>& networks = learner.networks();
  std::vector<float> output(2 * kSteps);
  bandit.value.resize(kSteps);
  networks.Act(bandit.observation, absl::MakeSpan(output));
  networks.Values(bandit.observation, absl::MakeSpan(bandit.value));
  for (int64_t i = 0; i < kSteps; ++i) {
    const float action = static_cast<float>(i % 2);
    bandit.action.push_back(action);
    bandit.log_prob.push_back(static_cast<float>(
        EvaluateAction<float>(networks.kind(),
                              absl::MakeConstSpan(output).subspan(2 * i, 2), {},
                              {action})
            .log_prob));
    bandit.advantage.push_back(2 * action - 1);
    bandit.target.push_back(3);
  }
  return bandit;
}

std::unique_ptr<PpoLearner> MakeLearner(uint64_t seed) {
  return std::make_unique<PpoLearner>(
      PpoLearner::Options{.inputs = 1,
                          .kind = {.is_discrete = true, .size = 2},
                          .max_batch = kSteps,
                          .epochs = 4,
                          .minibatches = 4,
                          .loss = {.clip_value_loss = false},
                          .seed = seed});
}

TEST(PpoLearnerTest, LearnsTheBetterActionAndTheValue) {
  const auto learner = MakeLearner(1);
  for (int round = 0; round < 30; ++round) {
    learner->Update(Play(*learner).view(), /*learning_rate=*/3e-3);
  }
  EXPECT_EQ(learner->updates(), 30);
  float output[2], value = 0;
  learner->networks().Act({1.f}, absl::MakeSpan(output));
  learner->networks().Values({1.f}, absl::MakeSpan(&value, 1));
  EXPECT_GT(output[1] - output[0], 2);
  EXPECT_NEAR(value, 3, 0.2);
}

TEST(PpoLearnerTest, RepeatsBitForBitWithItsSeedOnly) {
  const auto train = [](uint64_t seed) {
    const auto learner = MakeLearner(seed);
    for (int round = 0; round < 3; ++round) {
      learner->Update(Play(*learner).view(), 1e-3);
    }
    const auto parameters = learner->networks().parameters();
    return std::vector<float>(parameters.begin(), parameters.end());
  };
  EXPECT_EQ(train(1), train(1));
  EXPECT_NE(train(1), train(2));
}

TEST(PpoLearnerTest, FirstStepOfARoundHasARatioOfOne) {
  PpoLearner learner({.inputs = 1,
                      .kind = {.is_discrete = true, .size = 2},
                      .max_batch = kSteps});
  const PpoLearner::UpdateStats stats =
      learner.Update(Play(learner).view(), 1e-3);
  EXPECT_NEAR(stats.loss.approx_kl, 0, 1e-6);
  EXPECT_EQ(stats.loss.clip_fraction, 0);
  EXPECT_GT(stats.gradient_norm, 0);
}

}  // namespace
}  // namespace rill::ppo
