// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_ROUND_H_
#define RILL_EXAMPLES_PPO_ROUND_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "rill/estimators/value_estimates.h"
#include "rill/examples/ppo/learner/actor_critic.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::ppo {

// The collected steps of a round as the learner wants them: with advantages and
// value targets by GAE.
//
// A truncated episode bootstraps from the value of its true last observation, a
// terminated one from 0.
// Thread-safety: thread-compatible. Keeps its memory from round to round.
class Round {
 public:
  struct Options {
    double gamma = 0.99;
    double gae_lambda = 0.95;
  };

  // Reads a collector's batch [lanes, time] with PpoPolicy's outputs; the
  // networks are those that acted. INVALID_ARGUMENT and NOT_FOUND name the leaf
  // that does not fit.
  absl::Status Fill(const TensorDict& batch, const Options& options,
                    ActorCritic<float>* networks);

  // The steps of the last Fill; valid until the next one, or until the batch is
  // written again.
  PpoBatch<float> batch() const { return batch_; }

 private:
  absl::Status FillNextValues(const TensorDict& batch,
                              ActorCritic<float>* networks);
  absl::Status FillAdvantages(const TensorDict& batch, const Options& options);
  absl::Status FillActions(const TensorDict& batch, const ActionKind& kind);

  PpoBatch<float> batch_;
  Tensor next_value_;  // [lanes, time, 1]
  Advantages advantages_;
  std::vector<float> action_;
  // Steps whose successor is not in the batch.
  std::vector<int64_t> ends_;
  std::vector<float> end_observation_, end_value_;
};

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_ROUND_H_
