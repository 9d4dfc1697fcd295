// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/q_network.h"

#include <cstdint>

#include "ATen/TensorOperators.h"
#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/conv.h"
#include "torch/nn/modules/linear.h"
#include "torch/nn/options/conv.h"

namespace rill::torch_dqn {
namespace {

torch::nn::Conv2d HalvingConvolution(int64_t from, int64_t to) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, /*kernel_size=*/3)
                               .stride(2)
                               .padding(1));
}

torch::nn::Sequential Head(int64_t inputs, int64_t hidden, int64_t outputs) {
  return torch::nn::Sequential(torch::nn::Linear(inputs, hidden),
                               torch::nn::ReLU(),
                               torch::nn::Linear(hidden, outputs));
}

}  // namespace

QNetwork::QNetwork(const Sizes& sizes) {
  const int64_t channels = sizes.channels;
  image_ = register_module(
      "image", torch::nn::Sequential(HalvingConvolution(sizes.frames, channels),
                                     torch::nn::ReLU(),
                                     HalvingConvolution(channels, 2 * channels),
                                     torch::nn::ReLU()));
  const auto quarter = [](int64_t pixels) { return (pixels + 3) / 4; };
  const int64_t features =
      2 * channels * quarter(sizes.height) * quarter(sizes.width);
  value_ = register_module("value", Head(features, sizes.hidden, 1));
  advantages_ = register_module("advantages",
                                Head(features, sizes.hidden, sizes.actions));
}

at::Tensor QNetwork::forward(const at::Tensor& pixels) {
  const at::Tensor features =
      image_->forward(pixels.to(at::kFloat) / 255).flatten(1);
  const at::Tensor advantages = advantages_->forward(features);
  return value_->forward(features) + advantages -
         advantages.mean(/*dim=*/-1, /*keepdim=*/true);
}

}  // namespace rill::torch_dqn
