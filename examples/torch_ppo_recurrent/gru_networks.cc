// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_ppo_recurrent/gru_networks.h"

#include <cstdint>
#include <tuple>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace rill::torch_ppo_recurrent {

GruNetworks::GruNetworks(const Sizes& sizes) : has_memory_(sizes.has_memory) {
  cell_ = register_module("cell",
                          torch::nn::GRUCell(sizes.observation, sizes.units));
  actor_ =
      register_module("actor", torch::nn::Linear(sizes.units, sizes.actions));
  critic_ = register_module("critic", torch::nn::Linear(sizes.units, 1));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> GruNetworks::forward(
    const at::Tensor& observation, const at::Tensor& hidden) {
  const at::Tensor next = cell_->forward(
      observation, has_memory_ ? hidden : at::zeros_like(hidden));
  return {actor_->forward(next), critic_->forward(next), next};
}

std::tuple<at::Tensor, at::Tensor> GruNetworks::Unroll(
    const at::Tensor& observation, at::Tensor hidden, const at::Tensor& is_init,
    const at::Tensor& is_valid, int64_t burn_in) {
  const int64_t length = observation.size(1);
  std::vector<at::Tensor> logits, values;
  for (int64_t t = 0; t < length; ++t) {
    if (t == burn_in) hidden = hidden.detach();
    hidden = hidden.masked_fill(is_init.select(1, t).unsqueeze(-1), 0);
    const auto [logit, value, next] = forward(observation.select(1, t), hidden);
    hidden = at::where(is_valid.select(1, t).unsqueeze(-1), next, hidden);
    logits.push_back(logit);
    values.push_back(value.squeeze(-1));
  }
  return {at::stack(logits, 1), at::stack(values, 1)};
}

}  // namespace rill::torch_ppo_recurrent
