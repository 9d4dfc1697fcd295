// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_PPO_RECURRENT_GRU_NETWORKS_H_
#define RILL_EXAMPLES_TORCH_PPO_RECURRENT_GRU_NETWORKS_H_

#include <cstdint>
#include <tuple>

#include "ATen/core/Tensor.h"
#include "torch/nn/module.h"
#include "torch/nn/modules/linear.h"
#include "torch/nn/modules/rnn.h"

namespace rill::torch_ppo_recurrent {

// An actor and a critic with one recurrent state.
class GruNetworks : public torch::nn::Module {
 public:
  struct Sizes {
    int64_t observation = 0;
    int64_t actions = 0;
    int64_t units = 32;  // Of the state.
    // False: the state is zero before each step, so nothing is remembered.
    bool has_memory = true;
  };
  explicit GruNetworks(const Sizes& sizes);

  // One step: logits [N, actions], value [N, 1] and the state behind the step
  // [N, units], of an observation and the state before it.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(
      const at::Tensor& observation, const at::Tensor& hidden);

  // Steps [S, L], as sequences are sampled: logits [S, L, actions] and values
  // [S, L]. `hidden` [S, units] is the state before the first step. The state
  // is zero where `is_init`, and stays where a step is not `is_valid`. The
  // gradient ends at the first `burn_in` steps.
  std::tuple<at::Tensor, at::Tensor> Unroll(const at::Tensor& observation,
                                            at::Tensor hidden,
                                            const at::Tensor& is_init,
                                            const at::Tensor& is_valid,
                                            int64_t burn_in);

 private:
  const bool has_memory_;
  torch::nn::GRUCell cell_{nullptr};
  torch::nn::Linear actor_{nullptr}, critic_{nullptr};
};

}  // namespace rill::torch_ppo_recurrent

#endif  // RILL_EXAMPLES_TORCH_PPO_RECURRENT_GRU_NETWORKS_H_
