// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_SAC_TRAINER_H_
#define RILL_EXAMPLES_TORCH_SAC_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/examples/torch_sac/sac_learner.h"
#include "rill/examples/torch_sac/worker.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/libtorch/module_weights.h"
#include "rill/replay/replay_buffer.h"
#include "rill/telemetry/progress_line.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::torch_sac {

struct Config {
  int64_t seed = 0;
  int64_t total_steps = 300'000;  // Of the environments, and of the learner.
  int64_t random_steps = 10'000;  // Before the first update.
  int64_t workers = 2;            // Processes.
  int64_t steps_per_batch = 32;   // Of all workers.
  int64_t capacity = 1'000'000;   // Rows of the replay.
  int64_t batch_size = 256;
  int64_t prefetch = 2;  // Batches that are drawn ahead.
  int64_t evaluate_every = 10'000;
  int64_t evaluation_episodes = 5;
  int64_t checkpoint_every = 50'000;
};

using RunResult = examples::RunResult;

// Soft actor-critic; start reading here.
//
//   workers: Env <- TorchPolicy(actor) <----- WeightStore
//              |                                   ^
//   MultiSyncCollector                             | Publish
//              v                                   |
//   ReplayBuffer( MemmapStorage ) -> batch -> SacLearner
//
// The learner makes one update for each step, between two batches of the
// workers. So a run repeats bit for bit, and goes on so from its checkpoint.
// Thread-safety: thread-compatible; `stop` may be set by a signal handler.
class Trainer {
 public:
  struct Options {
    Task task;
    Config config;
    // Gets curve.csv, curve.svg, TensorBoard events, the replay's files and
    // checkpoints.
    std::string run_dir;
    bool resume = false;  // From the checkpoint in run_dir.
    // Workers are processes that run the function of this name. Empty: threads.
    std::string worker_name = "";
    const std::atomic<bool>* stop = nullptr;
  };
  // FAILED_PRECONDITION where run_dir exists, but for resume; NOT_FOUND where
  // there is no checkpoint to resume.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(Options options);

  // Runs to the end or to `stop`, which leaves a checkpoint. Call once.
  absl::StatusOr<RunResult> Run(ProgressLine& progress);

  const SacLearner& learner() const { return learner_; }

 private:
  explicit Trainer(Options options);

  absl::Status MakeParts();
  examples::EvaluatedRun::Options RunOptions() const;
  absl::Status Resume();
  absl::StatusOr<int64_t> CollectAndLearn();
  absl::StatusOr<examples::EvaluatedRun::Evaluation> Evaluate();
  absl::Status SaveCheckpoint();
  std::string CheckpointPath() const;
  ReplayBuffer::Options BufferOptions() const;

  const Options options_;
  SacLearner learner_;
  std::optional<ModuleWeights> weights_;  // Of the actor.
  std::unique_ptr<WeightStore> store_;
  std::unique_ptr<MultiSyncCollector> collector_;
  std::shared_ptr<Storage> storage_;
  std::unique_ptr<ReplayBuffer> buffer_;
  std::unique_ptr<Env> evaluation_env_;
  std::unique_ptr<Policy> greedy_;
  std::unique_ptr<examples::EvaluatedRun> run_;
  TensorDict batch_;
  SacLearner::Stats stats_;
};

}  // namespace rill::torch_sac

#endif  // RILL_EXAMPLES_TORCH_SAC_TRAINER_H_
