// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_SAC_SAC_LEARNER_H_
#define RILL_EXAMPLES_TORCH_SAC_SAC_LEARNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "rill/base/rng.h"
#include "rill/examples/torch_sac/networks.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/training_state.h"
#include "rill/tensordict/tensor_dict.h"
#include "torch/optim/adam.h"

namespace rill::torch_sac {

// Soft actor-critic with two critics and a temperature that is learned.
// Source: Haarnoja et al., "Soft actor-critic algorithms and applications",
//   2018.
//
// All noise is a function of (seed, number of the update): nothing of torch's
// generator is used after the networks were made.
// Thread-safety: thread-compatible.
class SacLearner {
 public:
  struct Options {
    Sizes sizes = {};
    ActionBounds bounds = {};
    double gamma = 0.99;
    double tau = 0.005;  // Of the targets' way to the critics, an update.
    double actor_rate = 3e-4, critic_rate = 1e-3, temperature_rate = 1e-3;
    uint64_t seed = 0;
  };
  explicit SacLearner(const Options& options);

  struct Stats {
    double critic_loss = 0, actor_loss = 0, temperature = 0, entropy = 0;
    double value = 0;  // Mean of the first critic.
  };
  // One step of all optimizers from a batch with observation, action,
  // next/observation, next/reward and next/terminated.
  // INVALID_ARGUMENT: a leaf that is missing or does not fit.
  absl::StatusOr<Stats> Update(const TensorDict& batch);

  const std::shared_ptr<Actor>& actor() const { return actor_; }
  int64_t updates() const { return updates_; }

  // A checkpoint holds these and the number of updates.
  absl::StatusOr<TrainingParts> parts();
  void set_updates(int64_t updates) { updates_ = updates; }

 private:
  const Options options_;
  const Rng rng_;
  int64_t updates_ = 0;
  std::shared_ptr<Actor> actor_;
  std::shared_ptr<Critics> critics_, targets_;
  std::shared_ptr<torch::nn::Module> temperature_;  // One parameter, its log.
  at::Tensor log_temperature_;
  std::vector<at::Tensor> critic_weights_, target_weights_;
  std::unique_ptr<torch::optim::Adam> actor_adam_, critic_adam_,
      temperature_adam_;
};

}  // namespace rill::torch_sac

#endif  // RILL_EXAMPLES_TORCH_SAC_SAC_LEARNER_H_
