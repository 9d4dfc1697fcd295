// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/atari_task.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"
#include "rill/examples/torch_dqn/trainer.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/specs/leaf_spec.h"
#include "rill/telemetry/progress_line.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"

namespace rill::torch_dqn {
namespace {

using ::testing::HasSubstr;

// The folder that pip put gymnasium and ale_py in; empty: they are not there.
std::string PackagePath() {
  const char* const path = std::getenv("RILL_GYMNASIUM_PATH");
  return path != nullptr &&
                 std::filesystem::exists(std::string(path) + "/ale_py")
             ? path
             : "";
}

TEST(AtariTaskTest, FramesAreThoseOfTheNetwork) {
  if (PackagePath().empty()) GTEST_SKIP() << "ale_py is not installed";
  RILL_ASSERT_OK_AND_ASSIGN(const Task task,
                            AtariTask({.python_path = {PackagePath()}}));
  EXPECT_EQ(task.sizes.actions, 6);
  RILL_ASSERT_OK_AND_ASSIGN(const auto env, task.make_env(2));
  const LeafSpec* const pixels = env->spec().observation.Find("pixels");
  ASSERT_NE(pixels, nullptr);
  EXPECT_EQ(pixels->dtype, DType::kUInt8);
  EXPECT_EQ(pixels->shape, Shape({1, task.sizes.height, task.sizes.width}));
  EXPECT_EQ(env->spec().observation.Find("observation"), nullptr);
}

// As many steps as show that all parts fit; a game is learned in millions.
TEST(AtariTaskTest, ARunLearnsSavesAndGoesOnWithFreshEpisodes) {
  if (PackagePath().empty()) GTEST_SKIP() << "ale_py is not installed";
  RILL_ASSERT_OK(SetTorchThreads(1));
  RILL_ASSERT_OK_AND_ASSIGN(Task task,
                            AtariTask({.python_path = {PackagePath()}}));
  task.sizes.channels = 4;
  task.sizes.hidden = 16;
  Trainer::Options options = {.task = std::move(task),
                              .config = {.total_steps = 96,
                                         .random_steps = 32,
                                         .lanes = 2,
                                         .steps_per_batch = 16,
                                         .updates_per_batch = 1,
                                         .capacity = 1024,
                                         .batch_size = 8,
                                         .evaluate_every = 1 << 20,
                                         .checkpoint_every = 1 << 20},
                              .run_dir = ::testing::TempDir() + "/atari"};
  std::filesystem::remove_all(options.run_dir);
  ProgressLine progress(stderr, false);
  RILL_ASSERT_OK_AND_ASSIGN(auto trainer, Trainer::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(RunResult result, trainer->Run(progress));
  EXPECT_EQ(result.steps, 96);
  trainer = nullptr;
  options.resume = true;
  options.config.total_steps = 128;
  RILL_ASSERT_OK_AND_ASSIGN(trainer, Trainer::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(result, trainer->Run(progress));
  EXPECT_EQ(result.steps, 128);
}

TEST(AtariTaskTest, AGameThatIsNotThereIsNamed) {
  if (PackagePath().empty()) GTEST_SKIP() << "ale_py is not installed";
  EXPECT_THAT(
      AtariTask({.id = "ALE/NoSuchGame-v5", .python_path = {PackagePath()}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NoSuchGame")));
}

}  // namespace
}  // namespace rill::torch_dqn
