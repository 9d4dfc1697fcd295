// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/trainer.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/examples/torch_dqn/catch_task.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/telemetry/progress_line.h"
#include "rill/testing/status_matchers.h"

namespace rill::torch_dqn {
namespace {

Trainer::Options Small(const std::string& name, int64_t total_steps) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  Task task = CatchTask(/*size=*/6);
  task.sizes.frames = 2;
  task.sizes.channels = 8;
  task.sizes.hidden = 32;
  return {.task = std::move(task),
          .config = {.total_steps = total_steps,
                     .random_steps = 256,
                     .lanes = 4,
                     .steps_per_batch = 16,
                     .updates_per_batch = 4,
                     .capacity = 4096,
                     .beta_steps = 1024,
                     .epsilon_steps = 1024,
                     .evaluate_every = 256,
                     .evaluation_episodes = 8,
                     .checkpoint_every = 1 << 20},
          .run_dir = folder};
}

// Runs to the end; the network's weights.
std::vector<at::Tensor> WeightsAfter(Trainer::Options options) {
  ProgressLine progress(stderr, false);
  auto trainer = Trainer::Create(std::move(options));
  RILL_EXPECT_OK(trainer);
  if (!trainer.ok()) return {};
  RILL_EXPECT_OK((*trainer)->Run(progress));
  return (*trainer)->learner().network()->parameters();
}

TEST(TrainerTest, ARunRepeatsAndGoesOnFromItsCheckpointBitForBit) {
  RILL_ASSERT_OK(SetTorchThreads(1));
  const auto whole = WeightsAfter(Small("whole", 512));
  const auto again = WeightsAfter(Small("again", 512));
  Trainer::Options halves = Small("halves", 400);
  WeightsAfter(halves);
  halves.config.total_steps = 512;
  halves.resume = true;
  const auto resumed = WeightsAfter(std::move(halves));
  ASSERT_FALSE(whole.empty());
  ASSERT_EQ(whole.size(), resumed.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(whole[i].equal(again[i])) << "parameter " << i;
    EXPECT_TRUE(whole[i].equal(resumed[i])) << "parameter " << i;
  }
}

TEST(TrainerTest, LearnsASmallCatch) {
  RILL_ASSERT_OK(SetTorchThreads(1));
  Trainer::Options options = Small("learns", 6'000);
  options.task = CatchTask(/*size=*/6);
  options.config.updates_per_batch = 8;
  options.config.beta_steps = 100'000;
  options.config.epsilon_steps = 4'000;
  options.config.evaluate_every = 1'000;
  options.config.evaluation_episodes = 32;
  ProgressLine progress(stderr, false);
  RILL_ASSERT_OK_AND_ASSIGN(auto trainer, Trainer::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const RunResult result, trainer->Run(progress));
  // An untrained network has less than 2.
  EXPECT_GE(result.evaluation_return, 4);
}

}  // namespace
}  // namespace rill::torch_dqn
