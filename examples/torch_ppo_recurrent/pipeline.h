// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_PPO_RECURRENT_PIPELINE_H_
#define RILL_EXAMPLES_TORCH_PPO_RECURRENT_PIPELINE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/torch_ppo_recurrent/gru_networks.h"
#include "rill/replay/replay_buffer.h"
#include "rill/transforms/batch_transform.h"

namespace rill::torch_ppo_recurrent {

struct Config {
  int64_t seed = 0;
  bool has_memory = true;
  int64_t total_steps = 100'000;
  int64_t lanes = 32;
  int64_t steps_per_round = 32;  // A lane.
  int64_t units = 32;            // Of the recurrent state.
  int64_t sequence_length = 8;   // Steps to learn from.
  int64_t burn_in = 4;           // Steps before them that warm the state up.
  int64_t epochs = 4;
  int64_t minibatches = 4;
  double learning_rate = 3e-3;  // Falls in a straight line to 0.
  double gamma = 0.99;
  double gae_lambda = 0.95;
  double entropy_coefficient = 0.01;
  int64_t evaluate_every = 10'240;
  int64_t evaluation_episodes = 200;

  int64_t rows_per_round() const { return lanes * steps_per_round; }
};

// Everything of a run that is Rill's. Recall is the task
// (examples/ppo_recurrent/recall_env.h).
struct Pipeline {
  std::unique_ptr<Policy> policy;  // Acts by the networks.
  std::unique_ptr<SyncCollector> collector;
  // Values of next states by the networks, then GAE.
  std::unique_ptr<BatchTransform> advantages;
  // A round's steps as sequences: each step is learned from once an epoch.
  std::unique_ptr<ReplayBuffer> buffer;
};
// INVALID_ARGUMENT names the setting that does not fit.
absl::StatusOr<Pipeline> MakePipeline(const Config& config,
                                      std::shared_ptr<GruNetworks> networks);

// The buffer's options, for a checkpoint that opens it.
absl::StatusOr<ReplayBuffer::Options> BufferOptions(const Config& config);

}  // namespace rill::torch_ppo_recurrent

#endif  // RILL_EXAMPLES_TORCH_PPO_RECURRENT_PIPELINE_H_
