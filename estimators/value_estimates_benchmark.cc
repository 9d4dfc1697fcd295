// SPDX-License-Identifier: Apache-2.0
// Advantages of a batch of PPO: 256 lanes of 128 steps.

#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/estimators/value_estimates.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

EstimatorSteps RandomSteps(const Shape& shape) {
  const LeafSpec number = LeafSpec::Unbounded(DType::kFloat32, {1});
  const LeafSpec flag = LeafSpec::Binary({1});
  const Rng rng(1, RngStream::kUser);
  return {.reward = *number.Random(shape, rng, 0),
          .value = *number.Random(shape, rng, 1),
          .next_value = *number.Random(shape, rng, 2),
          .done = *flag.Random(shape, rng, 3),
          .terminated = *flag.Random(shape, rng, 4)};
}

void BM_Gae(benchmark::State& state) {
  const EstimatorSteps steps = RandomSteps({state.range(0), state.range(1)});
  Advantages made;
  for (auto unused : state) {
    if (!GaeAdvantage(steps, 0.99, 0.95, &made).ok()) {
      state.SkipWithError("GaeAdvantage");
      break;
    }
    benchmark::DoNotOptimize(made.advantage.raw_data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * state.range(1));
}
BENCHMARK(BM_Gae)->Args({256, 128})->Args({16, 2048});

void BM_TdLambda(benchmark::State& state) {
  const EstimatorSteps steps = RandomSteps({state.range(0), state.range(1)});
  Tensor made;
  for (auto unused : state) {
    if (!TdLambdaReturn(steps, 0.99, 0.95, &made).ok()) {
      state.SkipWithError("TdLambdaReturn");
      break;
    }
    benchmark::DoNotOptimize(made.raw_data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * state.range(1));
}
BENCHMARK(BM_TdLambda)->Args({256, 128});

}  // namespace
}  // namespace rill
