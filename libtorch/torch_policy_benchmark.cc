// SPDX-License-Identifier: Apache-2.0
// The cost of a TorchPolicy above its module, with 64 lanes of CartPole's size.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/zeros.h"
#include "benchmark/benchmark.h"
#include "c10/core/InferenceMode.h"
#include "rill/envs/policies/policy.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/linear.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 64;

torch::nn::Sequential Network() {
  at::set_num_threads(1);
  return torch::nn::Sequential(torch::nn::Linear(4, 64), torch::nn::Tanh(),
                               torch::nn::Linear(64, 2));
}

void BM_Module(benchmark::State& state) {
  torch::nn::Sequential net = Network();
  const at::Tensor observation = at::zeros({kLanes, 4});
  for (auto _ : state) {
    const c10::InferenceMode no_gradients;
    benchmark::DoNotOptimize(net->forward(observation));
  }
}
BENCHMARK(BM_Module);

void BM_TorchPolicy(benchmark::State& state) {
  auto policy = TorchPolicy::Create(
      {.model = TorchModel::Of(Network().ptr()),
       .actions = static_cast<TorchPolicy::Actions>(state.range(0))});
  TensorDict root({kLanes}), step({kLanes});
  bool is_made =
      policy.ok() &&
      root.Set("observation", *Tensor::Zeros(DType::kFloat32, {kLanes, 4}))
          .ok() &&
      step.Set("action", *Tensor::Zeros(DType::kInt64, {kLanes})).ok() &&
      step.Set("log_prob", *Tensor::Zeros(DType::kFloat32, {kLanes, 1})).ok();
  if (!is_made) {
    state.SkipWithError("no policy");
    return;
  }
  int64_t i = 0;
  for (auto _ : state) {
    if (!(*policy)->Act(root, {.step = ++i}, &step).ok()) {
      state.SkipWithError("no action");
      return;
    }
  }
}
BENCHMARK(BM_TorchPolicy)
    ->ArgName("actions")
    ->Arg(static_cast<int>(TorchPolicy::Actions::kGreedy))
    ->Arg(static_cast<int>(TorchPolicy::Actions::kCategorical));

}  // namespace
}  // namespace rill
