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

TEST(RoundTest, ABatchWithoutThePolicysOutputsIsRefused) {
  ActorCritic<float> networks = Networks();
  TensorDict batch = Batch({}, networks);
  TensorDict other({kLanes, kTime});
  RILL_ASSERT_OK(other.Set("observation", *batch.Get("observation")));
  Round round;
  EXPECT_THAT(round.Fill(other, {}, &networks),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("log_prob")));
}

}  // namespace
}  // namespace rill::ppo
