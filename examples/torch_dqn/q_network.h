// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_DQN_Q_NETWORK_H_
#define RILL_EXAMPLES_TORCH_DQN_Q_NETWORK_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "torch/nn/module.h"
#include "torch/nn/modules/container/sequential.h"

namespace rill::torch_dqn {

// Sizes of the task and of the network.
struct Sizes {
  int64_t frames = 4;  // Of a stack.
  int64_t height = 0, width = 0;
  int64_t actions = 0;
  int64_t channels = 16;  // Of the first convolution; the second has twice.
  int64_t hidden = 128;
};

// Values of all actions, float32 [rows, actions], by stacks of frames uint8
// [rows, frames, height, width]: two convolutions, and two heads, of the
// state's value and of the actions' advantages.
// Source: Wang et al., "Dueling network architectures for deep reinforcement
//   learning", ICML 2016.
class QNetwork : public torch::nn::Module {
 public:
  explicit QNetwork(const Sizes& sizes);
  at::Tensor forward(const at::Tensor& pixels);

 private:
  torch::nn::Sequential image_{nullptr}, value_{nullptr}, advantages_{nullptr};
};

}  // namespace rill::torch_dqn

#endif  // RILL_EXAMPLES_TORCH_DQN_Q_NETWORK_H_
