// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/evaluator.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/log_entry.h"
#include "absl/log/log_sink.h"
#include "absl/log/log_sink_registry.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/transformed_env.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/envs/wrappers/frame_skip.h"
#include "rill/envs/wrappers/noop_reset.h"
#include "rill/envs/wrappers/time_limit.h"
#include "rill/envs/wrappers/vector_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/episodes/return_scaling.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Status Stay(const TensorDict&, Tensor*) { return absl::OkStatus(); }

// Feedback that keeps the pole up for ever.
absl::Status Balance(const TensorDict& root, Tensor* action) {
  RILL_ASSIGN_OR_RETURN(auto observation, root.Flat<float>("observation"));
  for (int64_t lane = 0; lane < action->num_elements(); ++lane) {
    const float* s = observation.data() + 4 * lane;
    action->data<int64_t>()[lane] =
        0.1f * s[0] + 0.3f * s[1] + 2.0f * s[2] + 0.6f * s[3] > 0;
  }
  return absl::OkStatus();
}

TEST(EvaluatorTest, EveryLaneRunsItsShareOfEpisodes) {
  // Lane 0 has episodes of 2 steps, lane 1 of 5: taking the first that end
  // would take more of lane 0.
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      EvaluateResult result,
      EvaluatePolicy(*env, FunctionPolicy(Stay), {.episodes = 5}));
  EXPECT_THAT(result.lengths, ElementsAre(2, 5, 2, 5, 2));
  EXPECT_THAT(result.returns, ElementsAre(3, 15, 3, 15, 3));
  EXPECT_EQ(result.mean_return, 39.0 / 5);
}

// The contexts of a policy's calls.
class Listener final : public Policy {
 public:
  absl::StatusOr<int64_t> Act(const TensorDict& /*root*/,
                              const ActContext& context,
                              TensorDict* /*step*/) override {
    contexts.push_back(context);
    return 0;
  }
  std::vector<ActContext> contexts;
};

TEST(EvaluatorTest, ActsWithoutExplorationUnlessAsked) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  Listener quiet, loud;
  RILL_ASSERT_OK(EvaluatePolicy(*env, quiet, {.episodes = 2}).status());
  RILL_ASSERT_OK(
      EvaluatePolicy(*env, loud, {.episodes = 2, .explore = true}).status());
  ASSERT_EQ(quiet.contexts.size(), 3);
  for (int64_t t = 0; t < 3; ++t) {
    EXPECT_FALSE(quiet.contexts[t].explore);
    EXPECT_TRUE(loud.contexts[t].explore);
    EXPECT_EQ(quiet.contexts[t].step, t);
    EXPECT_EQ(quiet.contexts[t].frames, 2 * t);
  }
}

TEST(EvaluatorTest, FewerEpisodesThanLanes) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(
      EvaluateResult result,
      EvaluatePolicy(*env, FunctionPolicy(Stay), {.episodes = 2}));
  EXPECT_THAT(result.lengths, ElementsAre(3, 3));
}

TEST(EvaluatorTest, ABalancedPoleReturnsFiveHundred) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(EvaluateResult result,
                            EvaluatePolicy(*env, FunctionPolicy(Balance),
                                           {.episodes = 8, .seed = 3}));
  EXPECT_THAT(result.returns, Each(500));
}

TEST(EvaluatorTest, EqualSeedsGiveEqualResults) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 3}));
  const EvaluateOptions options = {.episodes = 9, .seed = 3};
  RILL_ASSERT_OK_AND_ASSIGN(
      auto first, EvaluatePolicy(*env, FunctionPolicy(Stay), options));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto again, EvaluatePolicy(*env, FunctionPolicy(Stay), options));
  EXPECT_EQ(first.returns, again.returns);
}

TEST(EvaluatorTest, AnEpisodeWithoutEndIsAnError) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.episode_steps = 1000}));
  EXPECT_THAT(
      EvaluatePolicy(*env, FunctionPolicy(Stay), {.max_steps_per_episode = 50}),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("episode 0 in lane 0: not done after 50")));
}

// Memory is taken for episodes that were run.
TEST(EvaluatorTest, MoreEpisodesThanMemoryHoldsMayBeAskedFor) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.episode_steps = 1000}));
  EXPECT_THAT(
      EvaluatePolicy(*env, FunctionPolicy(Stay),
                     {.episodes = INT64_MAX, .max_steps_per_episode = 50}),
      StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(EvaluatorTest, NamesTheWrongOption) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({}));
  EXPECT_THAT(EvaluatePolicy(*env, FunctionPolicy(Stay), {.episodes = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("episodes: got 0, want >= 1")));
  EXPECT_THAT(
      EvaluatePolicy(*env, FunctionPolicy(Stay), {.max_steps_per_episode = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("max_steps_per_episode: got 0")));
}

// An environment that learns, and where its statistics are.
struct Learner {
  std::unique_ptr<Env> env = nullptr;
  std::vector<TransformedEnv*> parts = {};

  TensorDict Statistics() const {
    TensorDict all;
    for (size_t i = 0; i < parts.size(); ++i) {
      RILL_EXPECT_OK(all.Set(absl::StrCat(i), *parts[i]->Statistics()));
    }
    return *all.Clone();
  }
};

absl::StatusOr<std::unique_ptr<Env>> AddTransforms(std::unique_ptr<Env> env,
                                                   Learner* to) {
  TransformedEnv::Transforms transforms;
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        StepCounter::Create({.max_steps = 60}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), RewardSum::Create({}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), TrajCounter::Create({}));
  for (const double decay : {1.0, 0.99}) {
    RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                          VecNorm::Create({.shapes = {{4}}, .decay = decay}));
  }
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        ReturnScaling::Create({.gamma = 0.9}));
  RILL_ASSIGN_OR_RETURN(
      auto made, TransformedEnv::Create(std::move(env), std::move(transforms)));
  to->parts.push_back(made.get());
  return made;
}

absl::StatusOr<Learner> MakeLearner(const std::string& around) {
  Learner learner;
  // Lanes of an environment that learns cannot be stepped alone.
  const int64_t lanes = around == "NoopReset" ? 1 : 3;
  RILL_ASSIGN_OR_RETURN(auto cart_pole,
                        MakeCartPole({.lanes = lanes, .seed = 2}));
  RILL_ASSIGN_OR_RETURN(learner.env,
                        AddTransforms(std::move(cart_pole), &learner));
  if (around == "TimeLimit") {
    RILL_ASSIGN_OR_RETURN(
        learner.env, MakeTimeLimit(std::move(learner.env), {.max_steps = 30}));
  } else if (around == "FrameSkip") {
    RILL_ASSIGN_OR_RETURN(
        learner.env, MakeFrameSkip(std::move(learner.env), {.frame_skip = 2}));
  } else if (around == "NoopReset") {
    RILL_ASSIGN_OR_RETURN(learner.env,
                          MakeNoopReset(std::move(learner.env), {.noops = 3}));
  } else if (around == "TransformedEnv") {
    RILL_ASSIGN_OR_RETURN(learner.env,
                          TransformedEnv::Create(std::move(learner.env), {}));
  } else if (absl::StartsWith(around, "VectorEnv")) {
    std::vector<std::unique_ptr<Env>> envs;
    envs.push_back(std::move(learner.env));
    RILL_ASSIGN_OR_RETURN(auto other, MakeCartPole({.lanes = 1}));
    RILL_ASSIGN_OR_RETURN(envs.emplace_back(),
                          AddTransforms(std::move(other), &learner));
    RILL_ASSIGN_OR_RETURN(
        learner.env,
        MakeVectorEnv(std::move(envs),
                      {.threads = around == "VectorEnvThreads" ? 2 : 1}));
  }
  return learner;
}

class LearningTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Wrappers, LearningTest,
                         ::testing::Values("Nothing", "TimeLimit", "FrameSkip",
                                           "NoopReset", "TransformedEnv",
                                           "VectorEnv", "VectorEnvThreads"),
                         [](const auto& info) { return info.param; });

TEST_P(LearningTest, EqualEvaluationsAreEqualAndTeachNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const Learner learner, MakeLearner(GetParam()));
  RILL_ASSERT_OK(Rollout(*learner.env, FunctionPolicy(Balance),
                         {.max_steps = 50, .break_when_any_done = false}));
  const TensorDict before = learner.Statistics();
  const EvaluateOptions options = {.episodes = 9, .seed = 3};
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto first,
      EvaluatePolicy(*learner.env, FunctionPolicy(Balance), options));
  EXPECT_THAT(learner.Statistics(), BitEqualTo(before));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto again,
      EvaluatePolicy(*learner.env, FunctionPolicy(Balance), options));
  EXPECT_EQ(first.returns, again.returns);
  EXPECT_THAT(learner.Statistics(), BitEqualTo(before));
  // It learns again behind them.
  EXPECT_TRUE(learner.env->learns());
  RILL_ASSERT_OK(
      Rollout(*learner.env, FunctionPolicy(Balance), {.max_steps = 1}));
  EXPECT_THAT(learner.Statistics(), Not(BitEqualTo(before)));
}

// Open episodes go on as without the evaluation, also behind one that fails.
TEST_P(LearningTest, AnEvaluationLeavesTheEnvironmentAsItWas) {
  const auto steps_of = [](const Learner& learner, bool resets) {
    return *Rollout(
        *learner.env, FunctionPolicy(Balance),
        {.max_steps = 40, .auto_reset = resets, .break_when_any_done = false});
  };
  RILL_ASSERT_OK_AND_ASSIGN(const Learner plain, MakeLearner(GetParam()));
  RILL_ASSERT_OK_AND_ASSIGN(const Learner evaluated, MakeLearner(GetParam()));
  const auto evaluate = [&] {
    RILL_ASSERT_OK(EvaluatePolicy(*evaluated.env, FunctionPolicy(Balance),
                                  {.episodes = 5, .seed = 3}));
    EXPECT_THAT(EvaluatePolicy(*evaluated.env, FunctionPolicy(Balance),
                               {.max_steps_per_episode = 2}),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
  };
  evaluate();  // Before the first reset.
  EXPECT_THAT(steps_of(evaluated, true), BitEqualTo(steps_of(plain, true)));
  for (int i = 0; i < 3; ++i) {
    evaluate();
    EXPECT_THAT(evaluated.env->step(), BitEqualTo(plain.env->step()));
    EXPECT_THAT(steps_of(evaluated, false), BitEqualTo(steps_of(plain, false)));
  }
  EXPECT_THAT(evaluated.Statistics(), BitEqualTo(plain.Statistics()));
}

// Another environment, of which nobody can save a state.
class WithoutState final : public envs_internal::EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  absl::StatusOr<TensorDict> SaveState() const override {
    return Env::SaveState();
  }
};

TEST(EvaluatorTest, StatisticsStayWhereNoStateCanBeSaved) {
  Learner learner;
  RILL_ASSERT_OK_AND_ASSIGN(auto cart_pole, MakeCartPole({.lanes = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      learner.env,
      AddTransforms(std::make_unique<WithoutState>(std::move(cart_pole)),
                    &learner));
  RILL_ASSERT_OK(
      Rollout(*learner.env, FunctionPolicy(Balance), {.max_steps = 9}));
  const TensorDict before = learner.Statistics();
  RILL_ASSERT_OK(
      EvaluatePolicy(*learner.env, FunctionPolicy(Balance), {.episodes = 9}));
  EXPECT_THAT(learner.Statistics(), BitEqualTo(before));
}

// What one with a frozen VecNorm of the same statistics gives.
TEST(EvaluatorTest, StatisticsAreAppliedAsTheyWereLearned) {
  const auto make = [](double decay, bool frozen) {
    TransformedEnv::Transforms transforms;
    transforms.push_back(
        *VecNorm::Create({.shapes = {{4}}, .decay = decay, .frozen = frozen}));
    return *TransformedEnv::Create(*MakeCartPole({.lanes = 3}),
                                   std::move(transforms));
  };
  for (const double decay : {1.0, 0.9}) {
    const auto learned = make(decay, false);
    const auto frozen = make(decay, true);
    RILL_ASSERT_OK(Rollout(*learned, FunctionPolicy(Balance),
                           {.max_steps = 9, .break_when_any_done = false}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states, learned->Statistics());
    RILL_ASSERT_OK(frozen->LoadStatistics(states));
    const EvaluateOptions options = {.episodes = 9, .seed = 3};
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto got,
        EvaluatePolicy(*learned, FunctionPolicy(Balance), options));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto want,
        EvaluatePolicy(*frozen, FunctionPolicy(Balance), options));
    EXPECT_EQ(got.returns, want.returns) << decay;
  }
}

TEST(EvaluatorTest, WhatTheCallerHasFrozenStaysSo) {
  RILL_ASSERT_OK_AND_ASSIGN(const Learner learner, MakeLearner("TimeLimit"));
  learner.env->SetLearning(false);
  const TensorDict before = learner.Statistics();
  RILL_ASSERT_OK(
      EvaluatePolicy(*learner.env, FunctionPolicy(Balance), {.episodes = 1}));
  RILL_ASSERT_OK(
      Rollout(*learner.env, FunctionPolicy(Balance), {.max_steps = 9}));
  EXPECT_THAT(learner.Statistics(), BitEqualTo(before));
}

// The lines of the log while it lives.
class Log final : public absl::LogSink {
 public:
  Log() { absl::AddLogSink(this); }
  ~Log() override { absl::RemoveLogSink(this); }
  void Send(const absl::LogEntry& entry) override {
    lines.emplace_back(entry.text_message());
  }
  std::vector<std::string> lines;
};

TEST(EvaluatorTest, ALineInTheLogNamesStatisticsOfNoRow) {
  RILL_ASSERT_OK_AND_ASSIGN(const Learner learner, MakeLearner("Nothing"));
  const Log log;
  RILL_ASSERT_OK(
      EvaluatePolicy(*learner.env, FunctionPolicy(Balance), {.episodes = 1}));
  ASSERT_EQ(log.lines.size(), 3);
  EXPECT_THAT(log.lines[0],
              HasSubstr("transforms[3] (VecNorm) does not learn now and has "
                        "statistics of no row"));
  RILL_ASSERT_OK(
      Rollout(*learner.env, FunctionPolicy(Balance), {.max_steps = 2}));
  RILL_ASSERT_OK(
      EvaluatePolicy(*learner.env, FunctionPolicy(Balance), {.episodes = 1}));
  EXPECT_EQ(log.lines.size(), 3);
}

TEST(EvaluatorTest, ExplorationDrawsByTheSeedAndAnnealsByTheFramesOfTheRun) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  Listener listener;
  RILL_ASSERT_OK(EvaluatePolicy(
      *env, listener,
      {.episodes = 2, .seed = 7, .explore = true, .frames = 100}));
  ASSERT_EQ(listener.contexts.size(), 3);
  for (int64_t t = 0; t < 3; ++t) {
    EXPECT_EQ(listener.contexts[t].frames, 100 + 2 * t);
    EXPECT_EQ(listener.contexts[t].seed, 7);
  }
}

}  // namespace
}  // namespace rill
