// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_SAC_NETWORKS_H_
#define RILL_EXAMPLES_TORCH_SAC_NETWORKS_H_

#include <cstdint>
#include <tuple>

#include "ATen/core/Tensor.h"
#include "torch/nn/module.h"
#include "torch/nn/modules/container/sequential.h"

namespace rill::torch_sac {

// Sizes of the task and of the networks' two hidden layers.
struct Sizes {
  int64_t observation = 0;
  int64_t action = 0;
  int64_t hidden = 256;
};

// Mean and standard deviation [rows, action] of an action before the tanh, by
// an observation of any floating-point dtype.
class Actor : public torch::nn::Module {
 public:
  explicit Actor(const Sizes& sizes);
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& observation);

 private:
  torch::nn::Sequential net_{nullptr};
};

// Two estimates of an action's value, each [rows].
class Critics : public torch::nn::Module {
 public:
  explicit Critics(const Sizes& sizes);
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& observation,
                                             const at::Tensor& action);

 private:
  torch::nn::Sequential first_{nullptr}, second_{nullptr};
};

}  // namespace rill::torch_sac

#endif  // RILL_EXAMPLES_TORCH_SAC_NETWORKS_H_
