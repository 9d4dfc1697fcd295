// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "rill/tools/third_party/simd_proof.h"

namespace rill {
namespace {

void BM_SimdSum(benchmark::State& state) {
  const std::vector<float> x(state.range(0), 1.0f);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        SimdSum(x.data(), static_cast<int64_t>(x.size())));
  }
  state.SetLabel(SimdTarget());
  state.SetBytesProcessed(state.iterations() * state.range(0) *
                          static_cast<int64_t>(sizeof(float)));
}
BENCHMARK(BM_SimdSum)->Arg(1 << 6)->Arg(1 << 12);

}  // namespace
}  // namespace rill
