// SPDX-License-Identifier: Apache-2.0
// An update of DQN, one thread of torch. Counters: the CPU time in us of all of
// it (update_us) and of its data part (data_us), which is the sample, ToTorch,
// FromTorch and the priorities.
#include <cstdint>
#include <ctime>
#include <memory>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/learner/td_errors.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/conv.h"
#include "torch/nn/modules/linear.h"
#include "torch/optim/adam.h"

namespace rill {
namespace {

// CartPole's rows, 128 a batch; or 32 stacks of four frames of 84 x 84, in the
// network of Mnih et al. 2015.
enum Task : int64_t { kCartPole, kImages };

struct Parts {
  std::unique_ptr<ReplayBuffer> buffer;
  torch::nn::Sequential network{nullptr};
  std::unique_ptr<torch::optim::Adam> adam;
  TensorDict batch;
};

absl::Status FillRows(Task task, int64_t rows, ReplayBuffer& buffer) {
  TensorDict steps({rows});
  for (const char* key : {"observation", "next/observation"}) {
    RILL_ASSIGN_OR_RETURN(
        Tensor leaf, task == kCartPole
                         ? Tensor::Zeros(DType::kFloat32, {rows, 4})
                         : Tensor::Zeros(DType::kUInt8, {rows, 4, 84, 84}));
    RILL_RETURN_IF_ERROR(steps.Set(key, std::move(leaf)));
  }
  RILL_ASSIGN_OR_RETURN(Tensor action, Tensor::Zeros(DType::kInt64, {rows}));
  RILL_RETURN_IF_ERROR(steps.Set("action", std::move(action)));
  RILL_ASSIGN_OR_RETURN(Tensor reward,
                        Tensor::Zeros(DType::kFloat32, {rows, 1}));
  RILL_RETURN_IF_ERROR(steps.Set("next/reward", std::move(reward)));
  for (const char* key : {"next/terminated", "next/done"}) {
    RILL_ASSIGN_OR_RETURN(Tensor flag, Tensor::Zeros(DType::kBool, {rows, 1}));
    RILL_RETURN_IF_ERROR(steps.Set(key, std::move(flag)));
  }
  return buffer.Extend(steps).status();
}

absl::StatusOr<Parts> MakeParts(Task task) {
  RILL_RETURN_IF_ERROR(SetTorchThreads(1));
  Parts parts;
  const int64_t rows = task == kCartPole ? 50'000 : 2'000;
  RILL_ASSIGN_OR_RETURN(auto storage, DenseStorage::Create({.capacity = rows}));
  RILL_ASSIGN_OR_RETURN(auto sampler, MakePrioritizedSampler());
  RILL_ASSIGN_OR_RETURN(
      parts.buffer,
      ReplayBuffer::Create({.storage = std::move(storage),
                            .sampler = std::move(sampler),
                            .batch_size = task == kCartPole ? 128 : 32}));
  RILL_RETURN_IF_ERROR(FillRows(task, rows, *parts.buffer));
  using torch::nn::Conv2d;
  using torch::nn::Conv2dOptions;
  using torch::nn::Linear;
  using torch::nn::ReLU;
  parts.network =
      task == kCartPole
          ? torch::nn::Sequential(Linear(4, 120), ReLU(), Linear(120, 84),
                                  ReLU(), Linear(84, 2))
          : torch::nn::Sequential(
                Conv2d(Conv2dOptions(4, 32, 8).stride(4)), ReLU(),
                Conv2d(Conv2dOptions(32, 64, 4).stride(2)), ReLU(),
                Conv2d(Conv2dOptions(64, 64, 3)), ReLU(), torch::nn::Flatten(),
                Linear(3136, 512), ReLU(), Linear(512, 6));
  parts.adam = std::make_unique<torch::optim::Adam>(
      parts.network->parameters(), torch::optim::AdamOptions(1e-4));
  return parts;
}

// Forward, backward and a step; the errors.
at::Tensor Learn(const TorchTensors& rows, Parts& parts) {
  const auto values = [&](const char* key) {
    at::Tensor input = rows[key];
    if (input.scalar_type() == at::kByte) input = input.to(at::kFloat) / 255;
    return parts.network->forward(input);
  };
  const at::Tensor goal = rows["next/reward"].flatten() +
                          0.99 * values("next/observation").detach().amax(-1) *
                              rows["next/terminated"].flatten().logical_not();
  const at::Tensor chosen =
      values("observation").gather(-1, rows["action"].view({-1, 1})).flatten();
  parts.adam->zero_grad();
  at::huber_loss(chosen, goal).backward();
  parts.adam->step();
  return (goal - chosen).detach();
}

struct CpuTimes {
  std::clock_t update = 0, data = 0;
};

absl::Status Update(Parts& parts, CpuTimes& times) {
  const std::clock_t begin = std::clock();
  RILL_RETURN_IF_ERROR(parts.buffer->SampleInto(&parts.batch));
  RILL_ASSIGN_OR_RETURN(const TorchTensors rows, ToTorch(parts.batch));
  const std::clock_t sampled = std::clock();
  const at::Tensor td_errors = Learn(rows, parts);
  const std::clock_t learned = std::clock();
  RILL_RETURN_IF_ERROR(UpdatePriorities(*parts.buffer, parts.batch, td_errors));
  const std::clock_t end = std::clock();
  times.update += end - begin;
  times.data += (end - learned) + (sampled - begin);
  return absl::OkStatus();
}

void BM_Update(benchmark::State& state) {
  auto parts = MakeParts(static_cast<Task>(state.range(0)));
  absl::Status status = parts.status();
  CpuTimes times;
  for (auto _ : state) {
    if (status.ok()) status = Update(*parts, times);
    if (!status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return;
    }
  }
  const auto mean_us = [&](std::clock_t of) {
    return static_cast<double>(of) * 1e6 / CLOCKS_PER_SEC /
           static_cast<double>(state.iterations());
  };
  state.counters["update_us"] = mean_us(times.update);
  state.counters["data_us"] = mean_us(times.data);
}
BENCHMARK(BM_Update)->ArgName("images")->Arg(kCartPole)->Arg(kImages);

}  // namespace
}  // namespace rill
