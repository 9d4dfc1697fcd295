// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_DQN_DQN_LEARNER_H_
#define RILL_EXAMPLES_TORCH_DQN_DQN_LEARNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "rill/examples/torch_dqn/q_network.h"
#include "rill/libtorch/training_state.h"
#include "rill/tensordict/tensor_dict.h"
#include "torch/optim/adam.h"

namespace rill::torch_dqn {

// Double DQN over n-step returns, with importance weights.
// Sources: van Hasselt et al., "Deep reinforcement learning with double
//   Q-learning", AAAI 2016; Schaul et al., "Prioritized experience replay",
//   ICLR 2016.
//
// Nothing of torch's generator is used after the networks were made.
// Thread-safety: thread-compatible.
class DqnLearner {
 public:
  struct Options {
    Sizes sizes = {};
    double rate = 5e-4;
    double tau = 0.01;  // Of the target's way to the network, an update.
    double largest_gradient = 10;  // Its norm.
    uint64_t seed = 0;             // Of the first weights.
  };
  explicit DqnLearner(const Options& options);

  // Where the network is. The host waits for a value that it asks for.
  struct Stats {
    at::Tensor loss, value;  // Means, []. None before an update.
    at::Tensor td_errors;    // [rows].
  };
  // One step of the optimizer from a batch of windows (NStepReturns) of stacked
  // frames: pixels, action, priority_weight, gamma, next/pixels, next/reward,
  // next/terminated. NOT_FOUND: a leaf that is missing; INVALID_ARGUMENT: one
  // that does not fit.
  absl::StatusOr<Stats> Update(const TensorDict& batch);

  const std::shared_ptr<QNetwork>& network() const { return network_; }

  // The parts of a checkpoint.
  absl::StatusOr<TrainingParts> parts();

 private:
  const Options options_;
  std::shared_ptr<QNetwork> network_, target_;
  std::vector<at::Tensor> weights_, target_weights_;
  std::unique_ptr<torch::optim::Adam> adam_;
};

}  // namespace rill::torch_dqn

#endif  // RILL_EXAMPLES_TORCH_DQN_DQN_LEARNER_H_
