// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/trainer.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/examples/torch_sac/pendulum_task.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/telemetry/progress_line.h"
#include "rill/testing/status_matchers.h"

namespace rill::torch_sac {
namespace {

Task SmallPendulum() {
  Task task = PendulumTask();
  task.sizes.hidden = 32;
  return task;
}

Trainer::Options Small(const std::string& name, int64_t total_steps) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  return {.task = SmallPendulum(),
          .config = {.total_steps = total_steps,
                     .random_steps = 64,
                     .capacity = 1024,
                     .batch_size = 32,
                     .evaluate_every = 128,
                     .evaluation_episodes = 2,
                     .checkpoint_every = 1 << 20},
          .run_dir = folder};
}

// Runs to the end; the actor's weights.
std::vector<at::Tensor> ActorAfter(Trainer::Options options) {
  ProgressLine progress(stderr, false);
  auto trainer = Trainer::Create(std::move(options));
  RILL_EXPECT_OK(trainer);
  if (!trainer.ok()) return {};
  RILL_EXPECT_OK((*trainer)->Run(progress));
  return (*trainer)->learner().actor()->parameters();
}

TEST(TrainerTest, ARunRepeatsAndGoesOnFromItsCheckpointBitForBit) {
  RILL_ASSERT_OK(SetTorchThreads(1));
  const auto whole = ActorAfter(Small("whole", 320));
  const auto again = ActorAfter(Small("again", 320));
  ActorAfter(Small("halves", 192));
  Trainer::Options second = Small("other", 320);
  second.run_dir = ::testing::TempDir() + "/halves";
  second.resume = true;
  const auto resumed = ActorAfter(std::move(second));
  ASSERT_FALSE(whole.empty());
  ASSERT_EQ(whole.size(), resumed.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(whole[i].equal(again[i])) << "parameter " << i;
    EXPECT_TRUE(whole[i].equal(resumed[i])) << "parameter " << i;
  }
}

}  // namespace
}  // namespace rill::torch_sac
