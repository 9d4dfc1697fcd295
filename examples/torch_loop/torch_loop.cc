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
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/linear.h"
#include "torch/optim/adam.h"

torch::nn::Sequential Network() {
  return torch::nn::Sequential(torch::nn::Linear(4, 64), torch::nn::ReLU(),
                               torch::nn::Linear(64, 2));
}

absl::StatusOr<double> Learn() {
  RILL_RETURN_IF_ERROR(rill::SetTorchThreads(1));
  torch::nn::Sequential q = Network(), target = Network();
  RILL_ASSIGN_OR_RETURN(auto weights, rill::ModuleWeights::Of(*q));
  RILL_ASSIGN_OR_RETURN(auto goals, rill::ModuleWeights::Of(*target));
  torch::optim::Adam adam(q->parameters(), 1e-3);

  rill::TorchPolicy::Options greedy;
  greedy.model = rill::TorchModel::Of(q.ptr());
  greedy.actions = rill::TorchPolicy::Actions::kGreedy;
  RILL_ASSIGN_OR_RETURN(auto policy, rill::TorchPolicy::Create(greedy));
  RILL_ASSIGN_OR_RETURN(auto env, rill::MakeCartPole({.lanes = 8}));
  RILL_ASSIGN_OR_RETURN(auto explorer,
                        rill::MakeEGreedy(policy.get(), env->spec(),
                                          {.annealing_num_steps = 10'000}));
  RILL_ASSIGN_OR_RETURN(auto collector,
                        rill::SyncCollector::Create({.env = std::move(env),
                                                     .policy = explorer.get(),
                                                     .frames_per_batch = 64}));
  RILL_ASSIGN_OR_RETURN(auto storage, rill::DenseStorage::Create(
                                          {.capacity = 16'384, .lanes = 8}));
  RILL_ASSIGN_OR_RETURN(auto buffer, rill::ReplayBuffer::Create(
                                         {.storage = std::move(storage),
                                          .sampler = rill::MakeUniformSampler(),
                                          .batch_size = 128}));

  rill::TensorDict batch;
  while (collector->frames() < 40'000) {
    RILL_RETURN_IF_ERROR(collector->CollectInto(*buffer));
    if (collector->frames() % 512 == 0) {
      RILL_RETURN_IF_ERROR(goals.Load(weights.dict()));
    }
    for (int update = 0; update < 16; ++update) {
      RILL_RETURN_IF_ERROR(buffer->SampleInto(&batch));
      RILL_ASSIGN_OR_RETURN(const rill::TorchTensors rows,
                            rill::ToTorch(batch));
      RILL_RETURN_IF_ERROR(rill::CallTorch(
          [&] {
            const at::Tensor next =
                target->forward(rows["next/observation"]).detach();
            const at::Tensor goal =
                rows["next/reward"].flatten() +
                0.98 * next.amax(-1) *
                    rows["next/terminated"].flatten().logical_not();
            const at::Tensor value =
                q->forward(rows["observation"])
                    .gather(-1, rows["action"].view({-1, 1}));
            adam.zero_grad();
            at::huber_loss(value.flatten(), goal).backward();
            adam.step();
            return absl::OkStatus();
          },
          "Learn"));
    }
  }
  RILL_ASSIGN_OR_RETURN(auto fresh, rill::MakeCartPole({.lanes = 20}));
  RILL_ASSIGN_OR_RETURN(
      const auto result,
      rill::EvaluatePolicy(*fresh, *policy, {.episodes = 20}));
  return result.mean_return;
}

int main() {
  const absl::StatusOr<double> mean = Learn();
  if (!mean.ok()) std::puts(mean.status().ToString().c_str());
  if (mean.ok()) std::printf("20 episodes: mean return %.1f\n", *mean);
  return mean.ok() ? 0 : 1;
}
