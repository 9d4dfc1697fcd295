// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_DQN_TRAINER_H_
#define RILL_EXAMPLES_TORCH_DQN_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/examples/torch_dqn/dqn_learner.h"
#include "rill/examples/torch_dqn/q_network.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/telemetry/progress_line.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::torch_dqn {

// One discrete action is learned by single frames, the leaf `pixels`
// uint8 [1, height, width].
struct Task {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Env>>(int64_t lanes)> make_env;
  Sizes sizes = {};
  double solve_return = 0;  // Of an evaluation.
};

struct Config {
  int64_t seed = 0;
  int64_t total_steps = 100'000;  // Of the environments.
  int64_t random_steps = 2'000;   // Before the first update.
  int64_t lanes = 8;
  int64_t steps_per_batch = 32;  // Of all lanes.
  int64_t updates_per_batch = 16;
  int64_t capacity = 100'000;  // Rows of the replay.
  int64_t batch_size = 32;
  int64_t n_step = 3;
  double gamma = 0.98;
  double alpha = 0.5;            // Of priorities.
  double beta = 0.4;             // Of importance weights, at first.
  int64_t beta_steps = 100'000;  // From there to 1.
  double epsilon = 0.02;
  int64_t epsilon_steps = 20'000;  // From 1 to there.
  int64_t evaluate_every = 5'000;
  int64_t evaluation_episodes = 50;
  int64_t checkpoint_every = 100'000;
};

using RunResult = examples::RunResult;

// Rainbow's parts but for distributions and noisy layers; start reading here.
//
//   Env + CatFrames <- EGreedy( TorchPolicy(QNetwork) )
//         |                                  |
//   SyncCollector                            | shares the weights
//         v single frames                    |
//   ReplayBuffer( DenseStorage )  -> batch -> DqnLearner
//         ^ windows, stacks, weights             |
//         +------------- priorities -------------+
//
// The policy sees stacks that CatFrames makes beside the environment. They are
// dropped before the storage, which holds each frame once: the sampler's unit
// reads the frames before a row, and the rewards behind it, when it is drawn.
//
// All in one thread: a run repeats bit for bit, and goes on so from its
// checkpoint. Thread-safety: thread-compatible; `stop` may be set by a signal
// handler.
class Trainer {
 public:
  struct Options {
    Task task;
    Config config;
    // Gets curve.csv, curve.svg, TensorBoard events and checkpoints.
    std::string run_dir;
    bool resume = false;  // From the checkpoint in run_dir.
    const std::atomic<bool>* stop = nullptr;
  };
  // FAILED_PRECONDITION where run_dir exists, but for resume; NOT_FOUND where
  // there is no checkpoint to resume. Errors of the parts name the option.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(Options options);

  // Runs to the end or to `stop`, which leaves a checkpoint. Call once.
  absl::StatusOr<RunResult> Run(ProgressLine& progress);

  const DqnLearner& learner() const { return learner_; }

 private:
  explicit Trainer(Options options);

  absl::Status MakeParts();
  absl::StatusOr<std::unique_ptr<Env>> MakeStackingEnv(int64_t lanes) const;
  // Over an empty storage.
  absl::StatusOr<ReplayBuffer::Options> BufferOptions();
  examples::EvaluatedRun::Options RunOptions() const;
  absl::Status Resume();
  absl::StatusOr<int64_t> CollectAndLearn();
  absl::StatusOr<examples::EvaluatedRun::Evaluation> Evaluate();
  absl::Status SaveCheckpoint();
  std::string CheckpointPath() const;

  const Options options_;
  DqnLearner learner_;
  std::unique_ptr<Policy> greedy_, explorer_;
  std::unique_ptr<SyncCollector> collector_;
  std::unique_ptr<Env> evaluation_env_;
  PrioritizedSelector* exponents_ = nullptr;  // The buffer's.
  std::unique_ptr<ReplayBuffer> buffer_;
  std::unique_ptr<examples::EvaluatedRun> run_;
  TensorDict batch_;
  DqnLearner::Stats stats_;  // Of the last update.
};

}  // namespace rill::torch_dqn

#endif  // RILL_EXAMPLES_TORCH_DQN_TRAINER_H_
