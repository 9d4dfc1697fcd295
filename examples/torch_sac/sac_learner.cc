// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/sac_learner.h"

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/statusor.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/training_state.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "torch/csrc/autograd/grad_mode.h"
#include "torch/nn/module.h"
#include "torch/optim/adam.h"
#include "torch/utils.h"

namespace rill::torch_sac {
namespace {

absl::StatusOr<at::Tensor> Leaf(const TensorDict& batch, const char* key) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, batch.Get(key));
  return ToTorch(leaf);
}

}  // namespace

SacLearner::SacLearner(const Options& options)
    : options_(options), rng_(options.seed, RngStream::kUser) {
  torch::manual_seed(options.seed);
  actor_ = std::make_shared<Actor>(options.sizes);
  critics_ = std::make_shared<Critics>(options.sizes);
  targets_ = std::make_shared<Critics>(options.sizes);
  temperature_ = std::make_shared<torch::nn::Module>();
  log_temperature_ =
      temperature_->register_parameter("log_temperature", at::zeros({1}));
  critic_weights_ = critics_->parameters();
  target_weights_ = targets_->parameters();
  {
    const torch::NoGradGuard no_gradients;
    for (size_t i = 0; i < critic_weights_.size(); ++i) {
      target_weights_[i].copy_(critic_weights_[i]);
      target_weights_[i].set_requires_grad(false);
    }
  }
  const auto adam = [](const std::vector<at::Tensor>& weights, double rate) {
    return std::make_unique<torch::optim::Adam>(
        weights, torch::optim::AdamOptions(rate));
  };
  actor_adam_ = adam(actor_->parameters(), options.actor_rate);
  critic_adam_ = adam(critic_weights_, options.critic_rate);
  temperature_adam_ =
      adam(temperature_->parameters(), options.temperature_rate);
}

absl::StatusOr<TrainingParts> SacLearner::parts() {
  TrainingParts parts = {
      .optimizers = {{"actor", actor_adam_.get()},
                     {"critics", critic_adam_.get()},
                     {"temperature", temperature_adam_.get()}}};
  const std::pair<const char*, torch::nn::Module*> modules[] = {
      {"actor", actor_.get()},
      {"critics", critics_.get()},
      {"targets", targets_.get()},
      {"temperature", temperature_.get()}};
  for (const auto& [name, module] : modules) {
    RILL_ASSIGN_OR_RETURN(ModuleWeights weights, ModuleWeights::Of(*module));
    parts.weights.emplace(name, std::move(weights));
  }
  return parts;
}

absl::StatusOr<SacLearner::Stats> SacLearner::Update(const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const at::Tensor observation,
                        Leaf(batch, "observation"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor action, Leaf(batch, "action"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor next, Leaf(batch, "next/observation"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor reward, Leaf(batch, "next/reward"));
  RILL_ASSIGN_OR_RETURN(const at::Tensor terminated,
                        Leaf(batch, "next/terminated"));
  // Two draws an update: of the next action, and of the actor's own.
  const auto noise = [&](uint64_t draw) {
    return StandardNormals(rng_, 2 * static_cast<uint64_t>(updates_) + draw,
                           action.sizes());
  };
  const auto drawn = [&](const at::Tensor& at,
                         uint64_t draw) -> absl::StatusOr<TanhNormal::Drawn> {
    const auto [loc, scale] = actor_->forward(at);
    RILL_ASSIGN_OR_RETURN(const TanhNormal actions,
                          TanhNormal::Create(loc, scale, options_.bounds));
    return actions.Draw(noise(draw));
  };
  return CallTorch(
      [&]() -> absl::StatusOr<Stats> {
        Stats stats;
        const at::Tensor temperature = log_temperature_.detach().exp();
        at::Tensor goal;
        {
          const torch::NoGradGuard no_gradients;
          RILL_ASSIGN_OR_RETURN(const auto ahead, drawn(next, 0));
          const auto [first, second] = targets_->forward(next, ahead.action);
          goal = reward.flatten().to(at::kFloat) +
                 options_.gamma * terminated.flatten().logical_not() *
                     (at::min(first, second) - temperature * ahead.log_prob);
        }
        const auto [first, second] = critics_->forward(observation, action);
        const at::Tensor critic_loss =
            at::mse_loss(first, goal) + at::mse_loss(second, goal);
        critic_adam_->zero_grad();
        critic_loss.backward();
        critic_adam_->step();

        RILL_ASSIGN_OR_RETURN(const auto own, drawn(observation, 1));
        for (at::Tensor& weight : critic_weights_) {
          weight.set_requires_grad(false);
        }
        const auto [first_own, second_own] =
            critics_->forward(observation, own.action);
        const at::Tensor actor_loss =
            (temperature * own.log_prob - at::min(first_own, second_own))
                .mean();
        actor_adam_->zero_grad();
        actor_loss.backward();
        actor_adam_->step();
        for (at::Tensor& weight : critic_weights_) {
          weight.set_requires_grad(true);
        }

        // Towards an entropy of -1 for each number of an action.
        const at::Tensor entropy = -own.log_prob.detach().mean();
        const at::Tensor temperature_loss =
            log_temperature_.exp() * (entropy + options_.sizes.action);
        temperature_adam_->zero_grad();
        temperature_loss.sum().backward();
        temperature_adam_->step();
        {
          const torch::NoGradGuard no_gradients;
          at::_foreach_lerp_(target_weights_, critic_weights_, options_.tau);
        }
        ++updates_;
        stats = {.critic_loss = critic_loss.item<float>(),
                 .actor_loss = actor_loss.item<float>(),
                 .temperature = temperature.item<float>(),
                 .entropy = entropy.item<float>(),
                 .value = first.mean().item<float>()};
        return stats;
      },
      "SacLearner::Update");
}

}  // namespace rill::torch_sac
