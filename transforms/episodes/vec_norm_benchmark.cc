// SPDX-License-Identifier: Apache-2.0
// The transforms that most environments have beside them, as a TransformedEnv
// calls them: StepCounter, RewardSum and VecNorm of CartPole's four numbers.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

// One transform, its leaves and the two states that take turns.
struct Beside {
  std::unique_ptr<StepTransform> transform;
  TensorDict step = {};
  std::vector<BoundLeaf> leaves = {};
  TensorDict state = {};
  TensorDict next = {};
};

Beside Bind(std::unique_ptr<StepTransform> transform, int64_t lanes) {
  Beside beside = {.transform = std::move(transform)};
  const StepPlan plan = *beside.transform->PlanSteps(TedSpec());
  beside.step = *plan.spec.Random({lanes}, Rng(1, RngStream::kUser), 0);
  BoundRows rows =
      *BoundRows::Create("Bind", plan.leaves, {.is_passed_in = true});
  if (!rows.Bind(&beside.step).ok()) return beside;
  beside.leaves.assign(rows.leaves().begin(), rows.leaves().end());
  beside.state = *beside.transform->InitialState(lanes);
  return beside;
}

// The next state begins as this one, as in a TransformedEnv.
bool Share(const TensorDict& state, TensorDict* next) {
  const Tensor* const tensor = state.Find("observation");
  return tensor != nullptr && next->Set("observation", *tensor).ok();
}

void Run(std::vector<Beside> all, benchmark::State& state) {
  for (auto unused : state) {
    for (Beside& one : all) {
      if (!one.state.empty() && !Share(one.state, &one.next)) {
        state.SkipWithError("Share");
        return;
      }
      if (!one.transform->OnStep(one.leaves, &one.next).ok()) {
        state.SkipWithError("OnStep");
        return;
      }
      if (!one.state.empty()) std::swap(one.state, one.next);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

std::unique_ptr<StepTransform> Norm(double decay = 0.9999) {
  return *VecNorm::Create(
      {.shapes = {{4}}, .out_keys = {"normal"}, .decay = decay});
}

void BM_VecNorm(benchmark::State& state) {
  std::vector<Beside> all;
  all.push_back(Bind(Norm(), state.range(0)));
  Run(std::move(all), state);
}
BENCHMARK(BM_VecNorm)->Arg(1)->Arg(64);

// Decay 1: sums of digits.
void BM_ExactVecNorm(benchmark::State& state) {
  std::vector<Beside> all;
  all.push_back(Bind(Norm(/*decay=*/1), state.range(0)));
  Run(std::move(all), state);
}
BENCHMARK(BM_ExactVecNorm)->Arg(1)->Arg(64);

void BM_AllThree(benchmark::State& state) {
  std::vector<Beside> all;
  all.push_back(Bind(*StepCounter::Create({.max_steps = 500}), state.range(0)));
  all.push_back(Bind(*RewardSum::Create({}), state.range(0)));
  all.push_back(Bind(Norm(), state.range(0)));
  Run(std::move(all), state);
}
BENCHMARK(BM_AllThree)->Arg(64);

}  // namespace
}  // namespace rill
