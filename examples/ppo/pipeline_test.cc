// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/env.h"
#include "rill/examples/ppo/cart_pole_task.h"
#include "rill/examples/ppo/config.h"
#include "rill/examples/ppo/task.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/episodes/vec_norm.h"

namespace rill::ppo {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Ge;
using ::testing::IsSupersetOf;
using ::testing::Le;

constexpr int64_t kInputs = 3;

Task PendulumTask() {
  return {.program = "ppo_pendulum",
          .make_env = [](int64_t lanes, uint64_t seed) {
            return MakePendulum({.lanes = lanes, .seed = seed});
          }};
}

Config Normalising() {
  Config config;
  config.lanes = 4;
  config.steps_per_round = 256;
  config.normalize_observation = config.normalize_reward = true;
  config.evaluation_episodes = 5;
  return config;
}

TEST(PipelineTest, BatchesHoldWhatTheLearnerReads) {
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline pipeline,
                            MakePipeline(PendulumTask(), Normalising()));
  EXPECT_THAT(pipeline.source->spec().LeafKeys(),
              IsSupersetOf({"observation", "action", "drawn_action", "log_prob",
                            "state_value", "policy_version", "next/reward",
                            "next/done", "next/terminated", "next/observation",
                            "next/episode_reward"}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, pipeline.source->Next());
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<const float> observation,
                            batch.Flat<float>("observation"));
  ASSERT_EQ(observation.size(), 4 * 256 * kInputs);
  for (int64_t k = 0; k < kInputs; ++k) {
    double squares = 0;
    for (size_t i = k; i < observation.size(); i += kInputs) {
      squares += observation[i] * observation[i] / (4 * 256);
    }
    EXPECT_GT(squares, 0.3);
    EXPECT_LT(squares, 3);
  }
  // Pendulum takes torques in [-2, 2].
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<const float> action,
                            batch.Flat<float>("action"));
  EXPECT_THAT(action, Each(Ge(-2)));
  EXPECT_THAT(action, Each(Le(2)));
}

// Pendulum is truncated after 200 steps and never terminates; CartPole
// terminates long before its limit.
TEST(PipelineTest, AdvantagesBootstrapFromTheTrueLastObservation) {
  Config config = Normalising();
  config.gamma = 0.9;
  config.gae_lambda = 0.8;
  for (const bool terminates : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        Pipeline pipeline,
        MakePipeline(terminates ? CartPoleTask() : PendulumTask(), config));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, pipeline.source->Next());
    TensorDict no_state;
    RILL_ASSERT_OK(pipeline.advantages->Forward(&batch, &no_state));
    RILL_ASSERT_OK_AND_ASSIGN(const auto done, batch.Flat<bool>("next/done"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto terminated,
                              batch.Flat<bool>("next/terminated"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto reward,
                              batch.Flat<float>("next/reward"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto value,
                              batch.Flat<float>("state_value"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto advantage,
                              batch.Flat<float>("advantage"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto target,
                              batch.Flat<float>("value_target"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto next,
                              batch.Flat<float>("next/observation"));
    std::vector<float> next_value(done.size());
    pipeline.learner->networks().Values(next, absl::MakeSpan(next_value));
    int64_t ends = 0;
    double sum = 0;  // Of the step behind this one.
    for (int64_t i = config.lanes * config.steps_per_round - 1; i >= 0; --i) {
      if (done[i] || (i + 1) % config.steps_per_round == 0) sum = 0;
      ends += (terminates ? terminated[i] : done[i]) ? 1 : 0;
      sum = reward[i] + config.gamma * (terminated[i] ? 0 : next_value[i]) -
            value[i] + config.gamma * config.gae_lambda * sum;
      EXPECT_NEAR(advantage[i], sum, 1e-5) << i;
      EXPECT_NEAR(target[i], sum + value[i], 1e-5) << i;
    }
    if (terminates) {
      EXPECT_GE(ends, config.lanes);
    } else {
      EXPECT_EQ(ends, config.lanes);
    }
  }
}

TEST(PipelineTest, EvaluationSeesObservationsNormalisedAsTheCollectors) {
  const Config config = Normalising();
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline pipeline,
                            MakePipeline(PendulumTask(), config));
  RILL_ASSERT_OK(pipeline.source->Next().status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            pipeline.transform_states());
  const TensorDict* norm = states.FindDict("transforms/0/state");
  ASSERT_NE(norm, nullptr);
  RILL_ASSERT_OK_AND_ASSIGN(VecNormMoments moments,
                            ReadVecNorm(*norm, "observation"));
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Env> env,
                            MakeEvaluationEnv(PendulumTask(), config, states));
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Env> plain,
                            MakePendulum({.lanes = 5}));
  for (Env* each : {env.get(), plain.get()}) {
    RILL_ASSERT_OK(each->Seed(7));
    RILL_ASSERT_OK(each->Reset(std::vector<uint8_t>(5, 1)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<const float> seen,
                            env->step().Flat<float>("observation"));
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<const float> raw,
                            plain->step().Flat<float>("observation"));
  ASSERT_EQ(seen.size(), raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    const double loc = moments.loc.data<double>()[i % kInputs];
    const double scale = moments.scale.data<double>()[i % kInputs];
    EXPECT_NEAR(seen[i], std::clamp((raw[i] - loc) / scale, -10.0, 10.0), 1e-5);
    EXPECT_GT(std::abs(seen[i] - raw[i]), 1e-4);
  }
}

// Behind the sums of an episode's rewards, which stay as they are.
TEST(PipelineTest, RewardsAreDividedByTheDeviationOfTheReturn) {
  for (const bool in_worker : {false, true}) {
    Config config = Normalising();
    config.in_worker = in_worker;
    Config plain = config;
    plain.normalize_reward = false;
    RILL_ASSERT_OK_AND_ASSIGN(Pipeline scaled,
                              MakePipeline(PendulumTask(), config));
    RILL_ASSERT_OK_AND_ASSIGN(Pipeline raw,
                              MakePipeline(PendulumTask(), plain));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, scaled.source->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, raw.source->Next());
    EXPECT_THAT(*got.Flat<float>("next/episode_reward"),
                ElementsAreArray(*want.Flat<float>("next/episode_reward")));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                              scaled.transform_states());
    RILL_ASSERT_OK_AND_ASSIGN(
        const VecNormMoments moments,
        ReadVecNorm(*states.FindDict("transforms/3/state"), "returns"));
    EXPECT_EQ(moments.count, 4 * 256);
    // By what all steps say; lane 3's last step knew nearly that.
    const float last = (*want.Flat<float>("next/reward"))[4 * 256 - 1];
    EXPECT_NEAR((*got.Flat<float>("next/reward"))[4 * 256 - 1],
                last / moments.scale.data<double>()[0], 1e-4);
  }
}

TEST(PipelineTest, WithoutNormalisationEvaluationSeesTheEnvironmentsOwn) {
  Config config = Normalising();
  config.normalize_observation = config.normalize_reward = false;
  RILL_ASSERT_OK_AND_ASSIGN(Pipeline pipeline,
                            MakePipeline(PendulumTask(), config));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            pipeline.transform_states());
  EXPECT_TRUE(states.empty());
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Env> env,
                            MakeEvaluationEnv(PendulumTask(), config, states));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(5, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<const float> seen,
                            env->step().Flat<float>("observation"));
  for (size_t i = 0; i < seen.size(); i += kInputs) {
    EXPECT_NEAR(std::hypot(seen[i], seen[i + 1]), 1, 1e-6);  // cos and sin.
  }
}

}  // namespace
}  // namespace rill::ppo
