// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_PPO_RECURRENT_TRAINER_H_
#define RILL_EXAMPLES_TORCH_PPO_RECURRENT_TRAINER_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/examples/ppo_recurrent/recall_env.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/examples/torch_ppo_recurrent/gru_networks.h"
#include "rill/examples/torch_ppo_recurrent/pipeline.h"
#include "rill/libtorch/training_state.h"
#include "rill/telemetry/progress_line.h"
#include "rill/tensordict/tensor_dict.h"
#include "torch/optim/adam.h"

namespace rill::torch_ppo_recurrent {

using RunResult = examples::RunResult;

// 95 % of the best return.
inline constexpr double kSolveReturn = 0.95 * ppo_recurrent::kRecallBestReturn;

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

  examples::EvaluatedRun::Options RunOptions() const;
  absl::Status Resume();
  absl::Status LearnFrom(const TensorDict& sample);
  absl::StatusOr<examples::EvaluatedRun::Evaluation> Evaluate();
  absl::StatusOr<TrainingParts> Parts();

  const Options options_;
  std::shared_ptr<GruNetworks> networks_;
  std::unique_ptr<torch::optim::Adam> adam_;
  Pipeline pipeline_;
  std::unique_ptr<examples::EvaluatedRun> run_;
  double loss_ = 0, entropy_ = 0;  // Of the last minibatch.
};

}  // namespace rill::torch_ppo_recurrent

#endif  // RILL_EXAMPLES_TORCH_PPO_RECURRENT_TRAINER_H_
