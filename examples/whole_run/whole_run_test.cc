// SPDX-License-Identifier: Apache-2.0
// A whole run in one checkpoint: a collector fills a ring, two buffers read it,
// a learner counts. The resumed run goes on bit for bit as the run that was
// never stopped, also with a ring that is full.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/reward_sum.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 4;

struct Training {
  std::unique_ptr<SyncCollector> collector;
  std::unique_ptr<ReplayBuffer> actor, critic;
  double learned = 0;  // All that this learner has.
};

absl::StatusOr<std::unique_ptr<SyncCollector>> MakeCollector() {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSIGN_OR_RETURN(options.env, MakeCartPole({.lanes = kLanes}));
  RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
                        RewardSum::Create({}));
  options.frames_per_batch = 64;
  options.seed = 1;
  return SyncCollector::Create(std::move(options));
}

absl::StatusOr<std::map<std::string, ReplayBuffer::Options>> MakeBuffers() {
  RILL_ASSIGN_OR_RETURN(
      std::shared_ptr<Storage> storage,
      DenseStorage::Create({.capacity = 256, .lanes = kLanes}));
  std::map<std::string, ReplayBuffer::Options> buffers;
  buffers["actor"] = {.storage = storage, .batch_size = 16, .prefetch = 2};
  RILL_ASSIGN_OR_RETURN(buffers["actor"].sampler, MakePrioritizedSampler());
  buffers["critic"] = {.storage = storage, .batch_size = 16, .prefetch = 2};
  RILL_ASSIGN_OR_RETURN(buffers["critic"].sampler,
                        MakeSliceSampler({.length = 2}));
  return buffers;
}

absl::StatusOr<Training> Begin() {
  Training run;
  RILL_ASSIGN_OR_RETURN(run.collector, MakeCollector());
  RILL_ASSIGN_OR_RETURN(auto buffers, MakeBuffers());
  RILL_ASSIGN_OR_RETURN(run.actor,
                        ReplayBuffer::Create(std::move(buffers["actor"])));
  RILL_ASSIGN_OR_RETURN(run.critic,
                        ReplayBuffer::Create(std::move(buffers["critic"])));
  return run;
}

absl::Status Save(const std::string& directory, const Training& run) {
  RILL_ASSIGN_OR_RETURN(TensorDict collector, run.collector->SaveState());
  TensorDict learner;
  RILL_ASSIGN_OR_RETURN(const Tensor learned,
                        Tensor::From<double>({run.learned}, Shape({1})));
  RILL_RETURN_IF_ERROR(learner.Set("learned", learned));
  return RunCheckpoint::Save(
      directory,
      {.buffers = {{"actor", run.actor.get()}, {"critic", run.critic.get()}},
       .states = {{"collector", collector}, {"learner", learner}}});
}

absl::StatusOr<Training> Resume(const std::string& directory) {
  Training run;
  RILL_ASSIGN_OR_RETURN(auto buffers, MakeBuffers());
  RILL_ASSIGN_OR_RETURN(
      RunCheckpoint::Opened opened,
      RunCheckpoint::Open(directory, {.buffers = std::move(buffers),
                                      .states = {"collector", "learner"}}));
  RILL_ASSIGN_OR_RETURN(run.collector, MakeCollector());
  RILL_RETURN_IF_ERROR(run.collector->LoadState(opened.states["collector"]));
  run.actor = std::move(opened.buffers["actor"]);
  run.critic = std::move(opened.buffers["critic"]);
  RILL_ASSIGN_OR_RETURN(const absl::Span<double> learned,
                        opened.states["learner"].Flat<double>("learned"));
  run.learned = learned[0];
  return run;
}

// Returns both batches.
absl::StatusOr<std::vector<TensorDict>> Step(Training& run) {
  RILL_RETURN_IF_ERROR(run.collector->CollectInto(*run.actor));
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, run.actor->Sample());
  RILL_ASSIGN_OR_RETURN(const TensorDict slices, run.critic->Sample());
  RILL_ASSIGN_OR_RETURN(const absl::Span<float> sums,
                        rows.Flat<float>("next/episode_reward"));
  for (const float sum : sums) run.learned = 0.99 * run.learned + sum;
  RILL_RETURN_IF_ERROR(run.actor->UpdatePriorities(rows, sums));
  return std::vector<TensorDict>{rows, slices};
}

TEST(WholeRunTest, ResumedItGoesOnBitForBit) {
  const std::string directory =
      JoinPath(::testing::TempDir(), "whole_run_checkpoint");
  RILL_ASSERT_OK(RemoveAll(directory));
  RILL_ASSERT_OK_AND_ASSIGN(Training run, Begin());
  for (int i = 0; i < 6; ++i) RILL_ASSERT_OK(Step(run).status());
  ASSERT_EQ(run.actor->size(), 256);  // Full, and round again.
  RILL_ASSERT_OK(Save(directory, run));
  RILL_ASSERT_OK_AND_ASSIGN(Training resumed, Resume(directory));
  for (int i = 0; i < 6; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto want, Step(run));
    RILL_ASSERT_OK_AND_ASSIGN(const auto got, Step(resumed));
    RILL_EXPECT_OK(got[0].CheckEqual(want[0])) << "step " << i;
    RILL_EXPECT_OK(got[1].CheckEqual(want[1])) << "step " << i;
    EXPECT_EQ(resumed.learned, run.learned) << "step " << i;
  }
  RILL_EXPECT_OK(RemoveAll(directory));
}

}  // namespace
}  // namespace rill
