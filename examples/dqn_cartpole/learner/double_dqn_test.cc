// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/mlp.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::ElementsAre;
using ::testing::Lt;

constexpr int64_t kParameters = DoubleDqn::kParameters;

// A batch that owns its arrays.
struct OwnedBatch {
  std::vector<float> observation;
  std::vector<int64_t> action;
  std::vector<float> reward;
  std::vector<float> next_observation;
  std::unique_ptr<bool[]> terminated;

  TransitionBatch view() const {
    return {observation, action, reward, next_observation,
            absl::MakeConstSpan(terminated.get(), action.size())};
  }
};

// Rows that do not depend on one another; every third one is terminal.
OwnedBatch MakeBatch(int64_t size) {
  const Rng rng(5);
  OwnedBatch batch;
  batch.terminated = std::make_unique<bool[]>(size);
  for (int64_t b = 0; b < size; ++b) {
    for (int k = 0; k < 4; ++k) {
      batch.observation.push_back(2 * rng.UniformFloat(b, k) - 1);
      batch.next_observation.push_back(2 * rng.UniformFloat(b, 4 + k) - 1);
    }
    batch.action.push_back(rng.UniformInt(b, 8, 2));
    batch.reward.push_back(3 * rng.UniformFloat(b, 9) - 1);
    batch.terminated[b] = b % 3 == 0;
  }
  return batch;
}

// Different networks, so that a mix-up of online and target shows.
void Randomise(DoubleDqn& dqn) {
  std::vector<double> uniforms(kParameters);
  const Rng rng(6);
  for (int64_t i = 0; i < kParameters; ++i) {
    uniforms[i] = rng.UniformDouble(i, 0);
  }
  dqn.Initialize(uniforms);
  for (int64_t i = 0; i < kParameters; ++i) {
    dqn.online_parameters()[i] += 0.2f * rng.UniformFloat(i, 1) - 0.1f;
    dqn.target_parameters()[i] += 0.2f * rng.UniformFloat(i, 2) - 0.1f;
  }
}

std::vector<float> Values(absl::Span<const float> parameters,
                          absl::Span<const float> observation) {
  const int64_t batch = static_cast<int64_t>(observation.size()) / 4;
  learning::Mlp<float> net({.inputs = 4,
                            .outputs = 2,
                            .max_batch = batch,
                            .activation = learning::Activation::kRelu});
  std::vector<float> values(2 * batch);
  net.Forward(parameters, observation, absl::MakeSpan(values));
  return values;
}

TEST(DoubleDqnTest, TdErrorsFollowTheDoubleQTarget) {
  constexpr int64_t kBatch = 32;
  DoubleDqn dqn(kBatch, {.gamma = 0.9});
  Randomise(dqn);
  const OwnedBatch batch = MakeBatch(kBatch);
  const auto values = Values(dqn.online_parameters(), batch.observation);
  const auto chosen = Values(dqn.online_parameters(), batch.next_observation);
  const auto judged = Values(dqn.target_parameters(), batch.next_observation);
  std::vector<float> td_errors(kBatch);
  const DoubleDqn::UpdateStats stats =
      dqn.Update(batch.view(), 1e-3, absl::MakeSpan(td_errors));
  double loss = 0;
  int disagreements = 0;
  for (int64_t b = 0; b < kBatch; ++b) {
    const int best = chosen[2 * b + 1] > chosen[2 * b] ? 1 : 0;
    disagreements += best != (judged[2 * b + 1] > judged[2 * b] ? 1 : 0);
    const double target =
        batch.reward[b] +
        (batch.terminated[b] ? 0.0 : 0.9 * judged[2 * b + best]);
    const double error = values[2 * b + batch.action[b]] - target;
    EXPECT_NEAR(td_errors[b], error, 1e-5) << b;
    loss += std::abs(error) <= 1 ? error * error / 2 : std::abs(error) - 0.5;
  }
  EXPECT_NEAR(stats.loss, loss / kBatch, 1e-5);
  EXPECT_GT(disagreements, 0) << "the batch does not tell double from plain Q";
}

TEST(DoubleDqnTest, TruncatedEpisodesBootstrap) {
  // The same rows, terminal or not: only terminal ones lose the future's value.
  DoubleDqn a(3, {}), b(3, {});
  Randomise(a);
  Randomise(b);
  OwnedBatch batch = MakeBatch(3);
  std::vector<float> ended(3), running(3);
  std::fill_n(batch.terminated.get(), 3, true);
  a.Update(batch.view(), 1e-3, absl::MakeSpan(ended));
  std::fill_n(batch.terminated.get(), 3, false);
  b.Update(batch.view(), 1e-3, absl::MakeSpan(running));
  for (int i = 0; i < 3; ++i) EXPECT_NE(ended[i], running[i]);
}

TEST(DoubleDqnTest, UpdatesLowerTheLossOfAFixedBatch) {
  DoubleDqn dqn(32,
                {.gamma = 0});  // Plain regression: the targets stand still.
  Randomise(dqn);
  const OwnedBatch batch = MakeBatch(32);
  std::vector<float> td_errors(32);
  const double before =
      dqn.Update(batch.view(), 1e-3, absl::MakeSpan(td_errors)).loss;
  double after = before;
  for (int i = 0; i < 300; ++i) {
    after = dqn.Update(batch.view(), 1e-3, absl::MakeSpan(td_errors)).loss;
  }
  EXPECT_THAT(after, Lt(before / 20));
}

TEST(DoubleDqnTest, TargetMovesByTauTowardsTheNewOnlineNetwork) {
  DoubleDqn dqn(8, {.target_tau = 0.25});
  Randomise(dqn);
  const std::vector<float> before(dqn.target_parameters().begin(),
                                  dqn.target_parameters().end());
  std::vector<float> td_errors(8);
  dqn.Update(MakeBatch(8).view(), 1e-3, absl::MakeSpan(td_errors));
  for (int64_t i = 0; i < kParameters; ++i) {
    const float expected =
        before[i] + 0.25f * (dqn.online_parameters()[i] - before[i]);
    ASSERT_FLOAT_EQ(dqn.target_parameters()[i], expected) << i;
  }
}

TEST(DoubleDqnTest, GreedyActionsAreTheTargetNetworks) {
  DoubleDqn dqn(16, {});
  Randomise(dqn);
  const OwnedBatch batch = MakeBatch(16);
  const auto values = Values(dqn.target_parameters(), batch.observation);
  std::vector<int64_t> actions(16, -1);
  dqn.GreedyActions(batch.observation, absl::MakeSpan(actions));
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(actions[i], values[2 * i + 1] > values[2 * i] ? 1 : 0);
  }
}

TEST(DoubleDqnTest, LowerActionWinsATie) {
  DoubleDqn dqn(2, {});  // All parameters are zero.
  std::vector<int64_t> actions(2, -1);
  dqn.GreedyActions(std::vector<float>(8, 1.0f), absl::MakeSpan(actions));
  EXPECT_THAT(actions, ElementsAre(0, 0));
}

TEST(DoubleDqnTest, BatchThatIsNotFiniteLeavesTheNetworksAsTheyWere) {
  DoubleDqn dqn(4, {});
  Randomise(dqn);
  OwnedBatch batch = MakeBatch(4);
  batch.reward[1] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> online(dqn.online_parameters().begin(),
                                  dqn.online_parameters().end());
  const std::vector<float> target(dqn.target_parameters().begin(),
                                  dqn.target_parameters().end());
  std::vector<float> td_errors(4);
  EXPECT_FALSE(std::isfinite(
      dqn.Update(batch.view(), 1e-3, absl::MakeSpan(td_errors)).gradient_norm));
  EXPECT_THAT(dqn.online_parameters(), ::testing::ElementsAreArray(online));
  EXPECT_THAT(dqn.target_parameters(), ::testing::ElementsAreArray(target));
  EXPECT_EQ(dqn.adam().step_count(), 0);
}

}  // namespace
}  // namespace rill::dqn_cartpole
