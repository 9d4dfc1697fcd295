// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TESTING_DEPENDENT_LOADS_H_
#define RILL_SAMPLERS_TESTING_DEPENDENT_LOADS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "rill/base/rng.h"

namespace rill {

// A benchmark of the cost of memory where nothing hides it. It does `loads`
// loads an iteration out of `size` >= 1 numbers of 8 bytes, each of which says
// where the next one is. Register it beside the measured code, so that both are
// of one run.
// Thread-safety: thread-compatible.
inline void DependentLoads(benchmark::State& state, int64_t size,
                           int64_t loads) {
  const Rng rng(/*seed=*/1);
  std::vector<int64_t> next(size);
  for (int64_t i = 0; i < size; ++i) next[i] = i;
  for (int64_t i = size - 1; i > 0; --i) {  // One cycle of all (Sattolo).
    std::swap(next[i], next[rng.UniformInt(0, static_cast<uint32_t>(i), i)]);
  }
  int64_t at = 0;
  for (auto _ : state) {
    for (int64_t i = 0; i < loads; ++i) at = next[at];
    benchmark::DoNotOptimize(at);
  }
  state.SetItemsProcessed(state.iterations() * loads);
}

}  // namespace rill

#endif  // RILL_SAMPLERS_TESTING_DEPENDENT_LOADS_H_
