// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_RECURRENT_TRAINER_H_
#define RILL_EXAMPLES_PPO_RECURRENT_TRAINER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/collectors/sync_collector.h"
#include "rill/examples/learning/adam.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/ppo/learner/ppo_loss.h"
#include "rill/examples/ppo_recurrent/gru_policy.h"
#include "rill/examples/ppo_recurrent/learner/gru_actor_critic.h"
#include "rill/replay/replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill::ppo_recurrent {

struct Config {
  int64_t seed = 0;
  int64_t lanes = 32;
  int64_t steps_per_round = 32;  // A lane.
  int64_t total_steps = 60'000;
  int64_t units = 32;            // Of the recurrent state; a multiple of 16.
  int64_t sequence_length = 16;  // Steps of backpropagation through time.
  int64_t epochs = 4;
  int64_t minibatches = 4;
  double learning_rate = 3e-3;  // Falls in a straight line to 0.
  double gamma = 0.99;
  double gae_lambda = 0.95;
  double entropy_coefficient = 0.01;
  int64_t evaluation_episodes = 200;
};

// Recurrent PPO on the Recall task (recall_env.h); start reading here.
//
//   Recall -> SyncCollector( InitTracker, RewardSum ) -> batches [lanes, time]
//     ^                                                   |
//     |                                    NextStateValue, GAE
//     |                                                   v
//   GruPolicy <- GruActorCritic <- ReplayBuffer( MakeSequences )
//
// Advantages are made over whole lanes, before the buffer. The buffer makes
// sequences of a round's steps: each step is in one of them, an epoch.
// Each begins with the recurrent state that was stored at its first step.
//
// Thread-safety: thread-compatible.
class Trainer {
 public:
  // INVALID_ARGUMENT names the setting.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const Config& config);

  // Collects a round and learns from it.
  struct Round {
    int64_t steps = 0;        // Of the run so far.
    int64_t episodes = 0;     // That ended in this round.
    double mean_return = 0;   // Of those.
    int64_t sequences = 0;    // Learned from in an epoch.
    ppo::PpoStats loss = {};  // Means over the steps of Adam.
  };
  absl::StatusOr<Round> DoRound();

  // The mean return of fresh episodes, by the likeliest actions.
  absl::StatusOr<double> Evaluate();

  // Batches of the last round, with advantages; for tests.
  const TensorDict& batch() const { return batch_; }
  GruActorCritic<float>& networks() { return networks_; }

 private:
  explicit Trainer(const Config& config);

  int64_t rows_per_round() const {
    return config_.lanes * config_.steps_per_round;
  }
  absl::Status MakeParts();
  absl::Status Learn(Round* round);
  absl::Status LearnFrom(const TensorDict& sample, Round* round);

  const Config config_;
  GruActorCritic<float> networks_;
  learning::Adam adam_;
  learning::AlignedVector<float> gradient_;
  int64_t updates_ = 0;
  int64_t minibatches_ = 0;  // Of the round.
  GruPolicy policy_;
  std::unique_ptr<SyncCollector> collector_;
  std::unique_ptr<BatchTransform> advantages_;
  std::unique_ptr<ReplayBuffer> buffer_;
  TensorDict batch_;
  std::vector<float> hidden_;  // At the beginnings of sequences.
};

}  // namespace rill::ppo_recurrent

#endif  // RILL_EXAMPLES_PPO_RECURRENT_TRAINER_H_
