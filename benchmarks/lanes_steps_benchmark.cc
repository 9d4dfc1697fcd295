// SPDX-License-Identifier: Apache-2.0
// A collector that steps 16 to 65,536 lanes of CartPole with random actions, in
// batches of 65,536 rows. It does so alone, and with one of the transforms that
// most environments have beside them. benchmarks/lanes runs it.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "benchmark/benchmark.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

enum Beside : int64_t { kNone, kCounter, kSum, kNorm, kExactNorm };
constexpr const char* kNames[] = {"none", "StepCounter", "RewardSum", "VecNorm",
                                  "VecNorm, decay 1"};

void AddTransform(int64_t beside, SyncCollector::Options& options) {
  switch (beside) {
    case kCounter:
      options.transforms.push_back(*StepCounter::Create({.max_steps = 200}));
      return;
    case kSum:
      options.transforms.push_back(*RewardSum::Create({}));
      return;
    case kNorm:
    case kExactNorm:
      options.transforms.push_back(*VecNorm::Create(
          {.shapes = {{4}}, .decay = beside == kNorm ? 0.9999 : 1}));
      return;
    default:
      return;
  }
}

// The column "row" has the CPU time of a lane's step.
void BM_Collect(benchmark::State& state) {
  const int64_t lanes = state.range(0);
  const int64_t rows = std::max(lanes, state.range(1));
  SyncCollector::Options options;
  options.env = *MakeCartPole({.lanes = lanes});
  options.frames_per_batch = rows;
  AddTransform(state.range(2), options);
  auto collector = SyncCollector::Create(std::move(options));
  if (!collector.ok()) return state.SkipWithError("Create");
  for (auto _ : state) {
    if (!(*collector)->Next().ok()) return state.SkipWithError("Next");
  }
  state.SetLabel(kNames[state.range(2)]);
  state.counters["row"] = benchmark::Counter(
      static_cast<double>(rows), benchmark::Counter::kIsIterationInvariantRate |
                                     benchmark::Counter::kInvert);
}

void Sweep(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"lanes", "rows", "beside"});
  for (const int64_t beside : {kNone, kCounter, kSum, kNorm, kExactNorm}) {
    for (const int64_t lanes : {16, 1024, 4096, 16'384, 65'536}) {
      benchmark->Args({lanes, 65'536, beside});
    }
  }
}
BENCHMARK(BM_Collect)->Apply(Sweep);

void RegisterSmall() {
  for (const int64_t beside : {kNone, kCounter, kSum, kNorm, kExactNorm}) {
    benchmark::RegisterBenchmark("small/Collect", BM_Collect)
        ->Args({128, 256, beside});
  }
}
[[maybe_unused]] const bool kRegistered = (RegisterSmall(), true);

}  // namespace
}  // namespace rill
