// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/round.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/ppo/learner/action_head.h"
#include "rill/examples/ppo/learner/actor_critic.h"
#include "rill/examples/ppo/return_scaler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::ppo {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 2, kTime = 3, kSteps = kLanes * kTime;
constexpr double kGamma = 0.9, kLambda = 0.8;

struct Steps {
  std::vector<float> reward = {1, 2, 3, 4, 5, 6};
  // Lane 0 is truncated at step 1, lane 1 terminated at step 0.
  std::vector<bool> done = {false, true, false, true, false, false};
  std::vector<bool> terminated = {false, false, false, true, false, false};
};

ActorCritic<float> Networks() {
  ActorCritic<float> networks(1, {.is_discrete = true, .size = 2}, kSteps);
  networks.Initialize(Rng(1));
  return networks;
}

float ValueOf(ActorCritic<float>& networks, float observation) {
  float value = 0;
  networks.Values({observation}, absl::MakeSpan(&value, 1));
  return value;
}

// Step i of a line sees observation i / 10, and next to it i / 10 + 1 / 10,
// but for ends, whose true last observation is 9.
TensorDict Batch(const Steps& steps, ActorCritic<float>& networks) {
  std::vector<float> observation, next, value;
  for (int64_t i = 0; i < kSteps; ++i) {
    observation.push_back(static_cast<float>(i) / 10);
    next.push_back(steps.done[i] ? 9 : static_cast<float>(i + 1) / 10);
    value.push_back(ValueOf(networks, observation.back()));
  }
  TensorDict batch({kLanes, kTime});
  const auto set = [&](const char* key, absl::StatusOr<Tensor> tensor) {
    RILL_EXPECT_OK(tensor.status());
    RILL_EXPECT_OK(batch.Set(key, *std::move(tensor)));
  };
  const auto floats = [](const std::vector<float>& values) {
    return Tensor::From<float>(values, {kLanes, kTime, 1});
  };
  const auto flags = [](const std::vector<bool>& values) {
    return Tensor::From<bool>(values, {kLanes, kTime, 1});
  };
  set("observation", floats(observation));
  set("action", Tensor::From<int64_t>({0, 1, 0, 1, 1, 0}, {kLanes, kTime}));
  set("log_prob", floats(std::vector<float>(kSteps, -0.5f)));
  set("state_value", floats(value));
  set("next/observation", floats(next));
  set("next/reward", floats(steps.reward));
  set("next/done", flags(steps.done));
  set("next/terminated", flags(steps.terminated));
  return batch;
}

TEST(RoundTest, AdvantagesBootstrapFromTheTrueLastObservation) {
  ActorCritic<float> networks = Networks();
  const Steps steps;
  const TensorDict batch = Batch(steps, networks);
  Round round;
  RILL_ASSERT_OK(
      round.Fill(batch, {.gamma = kGamma, .gae_lambda = kLambda}, &networks));
  const PpoBatch<float> made = round.batch();
  ASSERT_EQ(made.size(), kSteps);
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    double advantage = 0;
    for (int64_t t = kTime - 1; t >= 0; --t) {
      const int64_t i = lane * kTime + t;
      double next = ValueOf(networks, steps.done[i] ? 9 : (i + 1) / 10.f);
      if (steps.terminated[i]) next = 0;
      if (steps.done[i]) advantage = 0;
      advantage = steps.reward[i] + kGamma * next - made.value[i] +
                  kGamma * kLambda * advantage;
      EXPECT_NEAR(made.advantage[i], advantage, 1e-5) << i;
      EXPECT_NEAR(made.value_target[i], advantage + made.value[i], 1e-5);
    }
  }
  EXPECT_THAT(made.action, ElementsAre(0, 1, 0, 1, 1, 0));
  EXPECT_EQ(made.log_prob[3], -0.5f);
  EXPECT_FLOAT_EQ(made.observation[5], 0.5f);
}

TEST(RoundTest, ScaledRewardsLeaveTheBatchAsItWas) {
  ActorCritic<float> networks = Networks();
  const Steps steps;
  const TensorDict batch = Batch(steps, networks);
  Round plain, scaled;
  ReturnScaler scaler(kLanes, kGamma);
  RILL_ASSERT_OK(plain.Fill(batch, {}, &networks));
  const std::vector<float> before(plain.batch().advantage.begin(),
                                  plain.batch().advantage.end());
  RILL_ASSERT_OK(scaled.Fill(batch, {.scaler = &scaler}, &networks));
  EXPECT_NE(scaled.batch().advantage[0], before[0]);
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(1, 2, 3, 4, 5, 6)));
}

TEST(RoundTest, ABatchWithoutThePolicysOutputsIsRefused) {
  ActorCritic<float> networks = Networks();
  TensorDict batch = Batch({}, networks);
  TensorDict other({kLanes, kTime});
  RILL_ASSERT_OK(other.Set("observation", *batch.Get("observation")));
  Round round;
  EXPECT_THAT(round.Fill(other, {}, &networks),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("log_prob")));
}

// Gymnasium's NormalizeReward, one number at a time: one lane.
TEST(ReturnScalerTest, AgreesWithGymnasiumsFormula) {
  const std::vector<float> reward = {1, -2, 3, 0.5, 100, 1};
  const bool done[] = {false, false, true, false, false, false};
  ReturnScaler scaler(1, kGamma);
  std::vector<float> scaled(6);
  // In two calls: what is learned is kept.
  scaler.Scale(absl::MakeConstSpan(reward).first(4),
               absl::MakeConstSpan(done).first(4),
               absl::MakeSpan(scaled).first(4));
  scaler.Scale(absl::MakeConstSpan(reward).subspan(4),
               absl::MakeConstSpan(done).subspan(4),
               absl::MakeSpan(scaled).subspan(4));
  double total = 0, count = 1e-4, mean = 0, variance = 1;
  for (int i = 0; i < 6; ++i) {
    total = total * kGamma + reward[i];
    const double delta = total - mean, all = count + 1;
    const double m2 = variance * count + delta * delta * count / all;
    mean += delta / all;
    variance = m2 / all;
    count = all;
    const double expected =
        std::min(10.0, reward[i] / std::sqrt(variance + 1e-8));
    EXPECT_NEAR(scaled[i], expected, 1e-5) << i;
    if (done[i]) total = 0;
  }
  EXPECT_NEAR(scaler.deviation(), std::sqrt(variance), 1e-6);
}

TEST(ReturnScalerTest, RewardsAreClippedToTen) {
  ReturnScaler scaler(1, kGamma);
  const std::vector<float> zeros(100, 0.f);
  const std::array<bool, 100> going = {};
  std::vector<float> scaled(100);
  scaler.Scale(zeros, going, absl::MakeSpan(scaled));
  const auto scale_one = [&](float reward) {
    float one = 0;
    scaler.Scale(absl::MakeConstSpan(&reward, 1),
                 absl::MakeConstSpan(going).first(1), absl::MakeSpan(&one, 1));
    return one;
  };
  EXPECT_EQ(scale_one(1000), 10);
  for (int i = 0; i < 1000; ++i) scale_one(0);
  EXPECT_EQ(scale_one(-1e6f), -10);
}

}  // namespace
}  // namespace rill::ppo
