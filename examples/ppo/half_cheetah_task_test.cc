// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/half_cheetah_task.h"

#include <cmath>
#include <cstdio>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/examples/ppo/config.h"
#include "rill/examples/ppo/trainer.h"
#include "rill/telemetry/progress_line.h"
#include "rill/testing/status_matchers.h"

namespace rill::ppo {
namespace {

// The whole run is README.md's; this shows that its parts fit.
TEST(HalfCheetahTaskTest, TwoRoundsLearnAndAreEvaluated) {
  Config config = HalfCheetahTask().defaults;
  config.steps_per_round = 1024;
  config.total_steps = 2048;
  config.epochs = 1;
  config.evaluation_episodes = 2;
  config.log_every = 1024;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto trainer,
      Trainer::Create({.task = HalfCheetahTask(), .config = config}));
  ProgressLine progress(stdout, /*is_terminal=*/false);
  RILL_ASSERT_OK_AND_ASSIGN(RunResult result, trainer->Run(progress));
  EXPECT_EQ(result.steps, 2048);
  EXPECT_EQ(result.episodes.size(), 2);  // Of 1,000 steps each.
  EXPECT_TRUE(std::isfinite(result.evaluation_return));
  ASSERT_EQ(trainer->rows().size(), 2);
  // Six elements of a standard normal; the deviations have hardly moved yet.
  EXPECT_NEAR(trainer->rows()[1][kEntropy], 6 * 1.419, 0.3);
  EXPECT_GT(trainer->rows()[1][kApproxKl], 0);
}

}  // namespace
}  // namespace rill::ppo
