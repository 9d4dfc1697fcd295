// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/exploration.h"
#include "rill/libtorch/target_network.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/linear.h"
#include "torch/optim/adam.h"
#include "torch/utils.h"

torch::nn::Sequential Network() {
  return torch::nn::Sequential(torch::nn::Linear(4, 64), torch::nn::ReLU(),
                               torch::nn::Linear(64, 2));
}

absl::Status Update(const rill::TorchTensors& rows, torch::nn::Sequential& q,
                    torch::nn::Sequential& target, torch::optim::Adam& adam) {
  const auto next = target->forward(rows["next/observation"]).detach();
  const auto open = rows["next/terminated"].flatten().logical_not();
  const auto goal = rows["next/reward"].flatten() + 0.98 * next.amax(-1) * open;
  const auto value =
      q->forward(rows["observation"]).gather(-1, rows["action"].view({-1, 1}));
  adam.zero_grad();
  at::huber_loss(value.flatten(), goal).backward();
  adam.step();
  return absl::OkStatus();
}

absl::StatusOr<double> Learn() {
  RILL_RETURN_IF_ERROR(rill::SetTorchThreads(1));
  torch::manual_seed(1);
  torch::nn::Sequential q = Network(), target = Network();
  torch::optim::Adam adam(q->parameters(), 1e-3);
  RILL_ASSIGN_OR_RETURN(auto policy,
                        rill::TorchPolicy::Create(
                            {.model = rill::TorchModel::Of(q.ptr()),
                             .actions = rill::TorchPolicy::Actions::kGreedy}));
  RILL_ASSIGN_OR_RETURN(auto env, rill::MakeCartPole({.lanes = 8}));
  RILL_ASSIGN_OR_RETURN(auto explorer,
                        rill::MakeEGreedy(policy.get(), env->spec(),
                                          {.annealing_num_steps = 10'000}));
  RILL_ASSIGN_OR_RETURN(auto collector,
                        rill::SyncCollector::Create({.env = std::move(env),
                                                     .policy = explorer.get(),
                                                     .frames_per_batch = 512}));
  RILL_ASSIGN_OR_RETURN(auto storage, rill::DenseStorage::Create(
                                          {.capacity = 16'384, .lanes = 8}));
  RILL_ASSIGN_OR_RETURN(auto buffer, rill::ReplayBuffer::Create(
                                         {.storage = std::move(storage),
                                          .sampler = rill::MakeUniformSampler(),
                                          .batch_size = 128}));

  while (collector->frames() < 40'000) {
    RILL_RETURN_IF_ERROR(collector->CollectInto(*buffer));
    RILL_RETURN_IF_ERROR(rill::UpdateTarget(*q, *target));
    for (int update = 0; update < 128; ++update) {
      RILL_ASSIGN_OR_RETURN(const auto batch, buffer->Sample());
      RILL_ASSIGN_OR_RETURN(const auto rows, rill::ToTorch(batch));
      RILL_RETURN_IF_ERROR(rill::CallTorch(
          [&] { return Update(rows, q, target, adam); }, "Update"));
    }
  }
  RILL_ASSIGN_OR_RETURN(auto test, rill::MakeCartPole({.lanes = 20}));
  RILL_ASSIGN_OR_RETURN(auto result,
                        rill::EvaluatePolicy(*test, *policy, {.episodes = 20}));
  return result.mean_return;
}

int main() {
  const absl::StatusOr<double> mean = Learn();
  if (!mean.ok()) std::puts(mean.status().ToString().c_str());
  if (mean.ok()) std::printf("20 episodes: mean return %.1f\n", *mean);
  return mean.ok() ? 0 : 1;
}
