// SPDX-License-Identifier: Apache-2.0
// Frames a second of SyncCollector on CartPole, by lanes and transforms.
#include <cstdint>
#include <utility>

#include "benchmark/benchmark.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

void Run(benchmark::State& state, SyncCollector::Options options) {
  const int64_t lanes = state.range(0);
  options.env = *MakeCartPole({.lanes = lanes});
  options.frames_per_batch = state.range(1) * lanes;
  auto collector = SyncCollector::Create(std::move(options));
  if (!collector.ok()) return state.SkipWithError("Create");
  for (auto _ : state) {
    if (!(*collector)->Next().ok()) state.SkipWithError("Next");
  }
  state.SetItemsProcessed((*collector)->frames());
  const SyncCollector::Times& times = (*collector)->times();
  const auto share = [&](absl::Duration part) {
    return absl::FDivDuration(part, times.env + times.policy + times.other);
  };
  state.counters["env"] = share(times.env);
  state.counters["policy"] = share(times.policy);
  state.counters["other"] = share(times.other);
}

void BM_RandomActions(benchmark::State& state) { Run(state, {}); }
BENCHMARK(BM_RandomActions)
    ->ArgNames({"lanes", "time"})
    ->Args({1, 64})
    ->Args({16, 64})
    ->Args({64, 64})
    ->Args({16, 1024})
    ->Args({256, 256});

// A policy that costs nothing: left until the pole falls.
void BM_ConstantActions(benchmark::State& state) {
  FunctionPolicy left([](const TensorDict&, const ActContext&, Tensor*) {
    return absl::OkStatus();
  });
  Run(state, {.policy = &left});
}
BENCHMARK(BM_ConstantActions)->ArgNames({"lanes", "time"})->Args({16, 64});

void BM_CounterAndSum(benchmark::State& state) {
  SyncCollector::Options options;
  options.transforms.push_back(*StepCounter::Create({.max_steps = 200}));
  options.transforms.push_back(*RewardSum::Create({}));
  Run(state, std::move(options));
}
BENCHMARK(BM_CounterAndSum)
    ->ArgNames({"lanes", "time"})
    ->Args({16, 64})
    ->Args({64, 64});

}  // namespace
}  // namespace rill
