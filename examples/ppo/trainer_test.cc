// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/trainer.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/examples/ppo/cart_pole_task.h"
#include "rill/examples/ppo/config.h"
#include "rill/examples/ppo/run_row.h"
#include "rill/examples/ppo/task.h"
#include "rill/telemetry/progress_line.h"
#include "rill/testing/status_matchers.h"

namespace rill::ppo {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A clock that stands still, so that files and rows hold no time.
class StoppedClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch(); }
};

struct Outcome {
  RunResult result;
  std::vector<RunRow> rows;
  std::vector<float> parameters;
};

Outcome Train(const Task& task, const Config& config,
              const std::string& run_dir = "") {
  static const StoppedClock clock;
  Outcome outcome;
  auto trainer = Trainer::Create({.task = task,
                                  .config = config,
                                  .run_dir = run_dir,
                                  .clock = &clock,
                                  .date = &clock});
  RILL_EXPECT_OK(trainer.status());
  if (!trainer.ok()) return outcome;
  std::FILE* out = std::fopen("/dev/null", "w");
  {
    ProgressLine progress(out, /*is_terminal=*/false);
    absl::StatusOr<RunResult> result = (*trainer)->Run(progress);
    RILL_EXPECT_OK(result.status());
    if (result.ok()) outcome.result = *std::move(result);
  }
  std::fclose(out);
  outcome.rows = (*trainer)->rows();
  const auto parameters =
      (*trainer)->pipeline().learner->networks().parameters();
  outcome.parameters.assign(parameters.begin(), parameters.end());
  return outcome;
}

Config ShortCartPole() {
  Config config = CartPoleTask().defaults;
  config.seed = 1;
  config.epochs = 10;
  config.total_steps = 30'720;
  config.evaluation_episodes = 20;
  return config;
}

// Real actions, without MuJoCo.
Task PendulumTask() {
  Task task;
  task.program = "ppo_pendulum";
  task.defaults = {.seed = 1,
                   .lanes = 8,
                   .steps_per_round = 128,
                   .total_steps = 61'440,
                   .normalize_observation = true,
                   .normalize_reward = true,
                   .epochs = 10,
                   .minibatches = 16,
                   .learning_rate = 1e-3,
                   .gamma = 0.9,
                   .evaluation_episodes = 20,
                   .log_every = 8'192};
  task.make_env = [](int64_t lanes, uint64_t seed) {
    return MakePendulum({.lanes = lanes, .seed = seed});
  };
  return task;
}

TEST(TrainerTest, ReturnOfCartPoleRises) {
  const Outcome outcome = Train(CartPoleTask(), ShortCartPole());
  EXPECT_EQ(outcome.result.steps, 30'720);
  ASSERT_THAT(outcome.rows, SizeIs(12));
  // Random actions hold the pole for about 22 steps.
  EXPECT_LT(outcome.rows.front()[kMeanReturn], 60);
  EXPECT_GT(outcome.result.MeanReturn(), 120);
  EXPECT_GT(outcome.result.evaluation_return, 300);
}

TEST(TrainerTest, ReturnOfPendulumRises) {
  const Task task = PendulumTask();
  const Outcome outcome = Train(task, task.defaults);
  // Random torques give about -1,200, a pole that stays up -150 or more. The
  // evaluation sees observations normalised as the policy knows them, else it
  // would fall back.
  EXPECT_LT(outcome.rows.front()[kMeanReturn], -1000);
  EXPECT_GT(outcome.result.MeanReturn(), -600);
  EXPECT_GT(outcome.result.evaluation_return, -500);
}

TEST(TrainerTest, RunsRepeatBitForBitWithTheirSeedOnly) {
  Config config = ShortCartPole();
  config.total_steps = 2'560;
  config.normalize_observation = config.normalize_reward = true;
  const Outcome one = Train(CartPoleTask(), config);
  const Outcome two = Train(CartPoleTask(), config);
  EXPECT_EQ(one.parameters, two.parameters);
  EXPECT_EQ(one.result.episodes, two.result.episodes);
  EXPECT_EQ(one.result.evaluation_return, two.result.evaluation_return);
  config.seed = 2;
  EXPECT_NE(Train(CartPoleTask(), config).parameters, one.parameters);
}

TEST(TrainerTest, OneWorkerGivesTheSameCurveAsNone) {
  Config config = ShortCartPole();
  config.total_steps = 2'560;
  config.normalize_observation = config.normalize_reward = true;
  const Outcome none = Train(CartPoleTask(), config);
  config.in_worker = true;
  const Outcome one = Train(CartPoleTask(), config);
  EXPECT_EQ(one.parameters, none.parameters);
  EXPECT_EQ(one.result.episodes, none.result.episodes);
  EXPECT_EQ(one.result.evaluation_return, none.result.evaluation_return);
}

TEST(TrainerTest, FolderHoldsTheCurve) {
  const std::string run_dir = JoinPath(::testing::TempDir(), "folder");
  RILL_ASSERT_OK(RemoveAll(run_dir));
  Config config = ShortCartPole();
  config.total_steps = 5'120;
  const Outcome outcome = Train(CartPoleTask(), config, run_dir);
  RILL_ASSERT_OK_AND_ASSIGN(std::string csv,
                            ReadFile(JoinPath(run_dir, "curve.csv")));
  EXPECT_THAT(csv, StartsWith("steps,episodes,mean_return,learning_rate,"));
  EXPECT_THAT(csv, HasSubstr("\n2560,"));
  EXPECT_THAT(csv, HasSubstr("\n5120,"));
  RILL_ASSERT_OK_AND_ASSIGN(std::string svg,
                            ReadFile(JoinPath(run_dir, "curve.svg")));
  EXPECT_THAT(svg, HasSubstr(">ppo_cart_pole, seed 1</text>"));
  EXPECT_THAT(ListDirectory(run_dir),
              IsOkAndHolds(Contains(StartsWith("events.out.tfevents."))));
  EXPECT_THAT(
      Trainer::Create(
          {.task = CartPoleTask(), .config = config, .run_dir = run_dir})
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("want a new folder")));
}

TEST(TrainerTest, StopEndsARunWithoutAnEvaluation) {
  const std::atomic<bool> stop = true;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto trainer,
      Trainer::Create(
          {.task = CartPoleTask(), .config = ShortCartPole(), .stop = &stop}));
  ProgressLine progress(stdout, /*is_terminal=*/false);
  RILL_ASSERT_OK_AND_ASSIGN(RunResult result, trainer->Run(progress));
  EXPECT_TRUE(result.was_interrupted);
  EXPECT_EQ(result.steps, 0);
  EXPECT_TRUE(std::isnan(result.MeanReturn()));
}

TEST(TrainerTest, TimeSplitNamesTheShareBesidePolicyAndLearning) {
  const TimeSplit split = {.environment = 1,
                           .policy = 3,
                           .transforms = 0.5,
                           .learn = 5,
                           .evaluate = 10,
                           .total = 20};
  EXPECT_DOUBLE_EQ(split.OverheadShare(), 0.2);
  EXPECT_THAT(FormatTimeSplit(split),
              HasSubstr("all but policy and learning takes 20.0 %\n"));
  EXPECT_EQ(TimeSplit().OverheadShare(), 0);
}

}  // namespace
}  // namespace rill::ppo
