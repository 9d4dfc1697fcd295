// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/networks.h"

#include <cstdint>
#include <tuple>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/linear.h"

namespace rill::torch_sac {
namespace {

// Bounds of the logarithm of the standard deviation.
constexpr double kMinLogScale = -5, kMaxLogScale = 2;

torch::nn::Sequential Mlp(int64_t inputs, int64_t hidden, int64_t outputs) {
  return torch::nn::Sequential(
      torch::nn::Linear(inputs, hidden), torch::nn::ReLU(),
      torch::nn::Linear(hidden, hidden), torch::nn::ReLU(),
      torch::nn::Linear(hidden, outputs));
}

}  // namespace

Actor::Actor(const Sizes& sizes) {
  net_ = register_module(
      "net", Mlp(sizes.observation, sizes.hidden, 2 * sizes.action));
}

std::tuple<at::Tensor, at::Tensor> Actor::forward(
    const at::Tensor& observation) {
  const auto halves = net_->forward(observation.to(at::kFloat)).chunk(2, -1);
  // Between the two bounds, with a slope everywhere.
  const at::Tensor log_scale =
      kMinLogScale +
      0.5 * (kMaxLogScale - kMinLogScale) * (halves[1].tanh() + 1);
  return {halves[0].contiguous(), log_scale.exp()};
}

Critics::Critics(const Sizes& sizes) {
  const int64_t inputs = sizes.observation + sizes.action;
  first_ = register_module("first", Mlp(inputs, sizes.hidden, 1));
  second_ = register_module("second", Mlp(inputs, sizes.hidden, 1));
}

std::tuple<at::Tensor, at::Tensor> Critics::forward(
    const at::Tensor& observation, const at::Tensor& action) {
  const at::Tensor inputs = at::cat({observation.to(at::kFloat), action}, -1);
  return {first_->forward(inputs).squeeze(-1),
          second_->forward(inputs).squeeze(-1)};
}

}  // namespace rill::torch_sac
