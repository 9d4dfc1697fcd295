// SPDX-License-Identifier: Apache-2.0
// Cost of CartPole a lane and step, with the resets of lanes that are done.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

void BM_CartPoleStep(benchmark::State& state) {
  const int64_t lanes = state.range(0);
  auto env = MakeCartPole({.lanes = lanes});
  const TensorDict* step = &(*env)->step();
  auto action = step->Flat<int64_t>("action");
  auto done = step->Flat<bool>("next/done");
  std::vector<uint8_t> mask(lanes, 1);
  // Ready-made random actions: drawing them is not what is measured.
  constexpr int64_t kRows = 64;
  std::vector<int64_t> actions(kRows * lanes);
  for (size_t i = 0; i < actions.size(); ++i) {
    actions[i] = Rng(1).UniformInt(0, static_cast<uint32_t>(i), 2);
  }
  if (!(*env)->Reset(mask).ok()) state.SkipWithError("Reset");
  int64_t row = 0;
  for (auto _ : state) {
    std::copy_n(actions.data() + row * lanes, lanes, action->data());
    row = (row + 1) % kRows;
    if (!(*env)->Step().ok()) state.SkipWithError("Step");
    std::copy(done->begin(), done->end(), mask.begin());
    if (std::find(mask.begin(), mask.end(), 1) != mask.end()) {
      if (!(*env)->Reset(mask).ok()) state.SkipWithError("Reset");
    }
  }
  state.SetItemsProcessed(state.iterations() * lanes);
}
BENCHMARK(BM_CartPoleStep)->Arg(1)->Arg(16)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace rill
