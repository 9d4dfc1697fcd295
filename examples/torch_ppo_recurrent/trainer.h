// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_PPO_RECURRENT_TRAINER_H_
#define RILL_EXAMPLES_TORCH_PPO_RECURRENT_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/examples/torch_ppo_recurrent/gru_networks.h"
#include "rill/examples/torch_ppo_recurrent/pipeline.h"
#include "rill/libtorch/training_state.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/progress_line.h"
#include "rill/telemetry/run_files.h"
#include "rill/tensordict/tensor_dict.h"
#include "torch/optim/adam.h"

namespace rill::torch_ppo_recurrent {

struct RunResult {
  int64_t steps = 0;
  double evaluation_return = 0;  // The last one.
  bool is_solved = false;        // 95 % of the best return.
  bool was_interrupted = false;
};

// Recurrent PPO on Recall (examples/ppo_recurrent/recall_env.h), with a GRU of
// LibTorch; start reading here.
//
//   Recall -> SyncCollector( InitTracker ) -> batches [lanes, time]
//     ^                                          |
//     |                               NextStateValue, GAE
//     |                                          v
//   TorchPolicy <- GruNetworks <- ReplayBuffer( MakeSequences )
//
// A sequence begins with the state that was stored at its first step; burn-in
// steps bring it up to the newest weights.
// Thread-safety: thread-compatible; `stop` may be set by a signal handler.
class Trainer {
 public:
  struct Options {
    Config config;
    std::string run_dir;  // Gets curve.csv, curve.svg, events, a checkpoint.
    bool resume = false;  // From the checkpoint in run_dir.
    const std::atomic<bool>* stop = nullptr;
  };
  // INVALID_ARGUMENT names a setting that does not fit. FAILED_PRECONDITION
  // where run_dir exists, NOT_FOUND where there is no checkpoint to resume.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const Options& options);

  // Runs to the end or to `stop`, and leaves a checkpoint. Call once.
  absl::StatusOr<RunResult> Run(ProgressLine& progress);

  // The steps of Run: collects a round and learns from it; saves what a resumed
  // run goes on from.
  absl::Status DoRound();
  absl::Status SaveCheckpoint();

  const std::shared_ptr<GruNetworks>& networks() const { return networks_; }

 private:
  explicit Trainer(const Options& options);

  absl::Status Resume();
  absl::Status LearnFrom(const TensorDict& sample);
  absl::Status Evaluate(ProgressLine& progress);
  absl::StatusOr<TrainingParts> Parts();

  const Options options_;
  std::shared_ptr<GruNetworks> networks_;
  std::unique_ptr<torch::optim::Adam> adam_;
  Pipeline pipeline_;
  std::unique_ptr<RunFiles> files_;
  LearningCurve curve_;
  absl::Time begin_;
  RunResult result_;
  int64_t next_evaluation_;
  double loss_ = 0, entropy_ = 0;  // Of the last minibatch.
};

}  // namespace rill::torch_ppo_recurrent

#endif  // RILL_EXAMPLES_TORCH_PPO_RECURRENT_TRAINER_H_
