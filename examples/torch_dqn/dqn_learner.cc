// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/dqn_learner.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/training_state.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "torch/csrc/autograd/grad_mode.h"
#include "torch/nn/utils/clip_grad.h"
#include "torch/optim/adam.h"
#include "torch/utils.h"

namespace rill::torch_dqn {
namespace {

absl::StatusOr<at::Tensor> Leaf(const TensorDict& batch, const char* key) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, batch.Get(key));
  return ToTorch(leaf);
}

}  // namespace

DqnLearner::DqnLearner(const Options& options) : options_(options) {
  torch::manual_seed(options.seed);
  network_ = std::make_shared<QNetwork>(options.sizes);
  target_ = std::make_shared<QNetwork>(options.sizes);
  weights_ = network_->parameters();
  target_weights_ = target_->parameters();
  const torch::NoGradGuard no_gradients;
  for (size_t i = 0; i < weights_.size(); ++i) {
    target_weights_[i].copy_(weights_[i]);
    target_weights_[i].set_requires_grad(false);
  }
  adam_ = std::make_unique<torch::optim::Adam>(
      weights_, torch::optim::AdamOptions(options.rate));
}

absl::StatusOr<TrainingParts> DqnLearner::parts() {
  TrainingParts parts = {.optimizers = {{"network", adam_.get()}}};
  RILL_ASSIGN_OR_RETURN(ModuleWeights network, ModuleWeights::Of(*network_));
  parts.weights.emplace("network", std::move(network));
  RILL_ASSIGN_OR_RETURN(ModuleWeights target, ModuleWeights::Of(*target_));
  parts.weights.emplace("target", std::move(target));
  return parts;
}

absl::StatusOr<DqnLearner::Stats> DqnLearner::Update(const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const at::Tensor pixels, Leaf(batch, "pixels"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor action, Leaf(batch, "action"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor weight,
                        Leaf(batch, "priority_weight"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor gamma, Leaf(batch, "gamma"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor next, Leaf(batch, "next/pixels"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor reward, Leaf(batch, "next/reward"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor terminated,
                        Leaf(batch, "next/terminated"));
  return CallTorch(
      [&]() -> absl::StatusOr<Stats> {
        at::Tensor goal;
        {
          // The network chooses the action, and the target says its value.
          const torch::NoGradGuard no_gradients;
          const at::Tensor best =
              network_->forward(next).argmax(-1, /*keepdim=*/true);
          goal = reward + gamma * terminated.logical_not() *
                              target_->forward(next).gather(-1, best);
        }
        const at::Tensor value =
            network_->forward(pixels).gather(-1, action.view({-1, 1}));
        const at::Tensor losses =
            at::smooth_l1_loss(value, goal, at::Reduction::None);
        const at::Tensor loss = (weight.view({-1, 1}) * losses).mean();
        adam_->zero_grad();
        loss.backward();
        torch::nn::utils::clip_grad_norm_(weights_, options_.largest_gradient);
        adam_->step();

        const torch::NoGradGuard no_gradients;
        at::_foreach_lerp_(target_weights_, weights_, options_.tau);
        return Stats{.loss = loss.detach(),
                     .value = value.mean(),
                     .td_errors = (value - goal).flatten()};
      },
      "DqnLearner::Update");
}

}  // namespace rill::torch_dqn
