// SPDX-License-Identifier: Apache-2.0
// The cost of the typed forms, beside the same loop without them in this run.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "benchmark/benchmark.h"
#include "rill/specs/field.h"
#include "rill/specs/schema.h"
#include "rill/specs/struct_schema.h"

namespace rill {
namespace {

constexpr int64_t kRows = 1000;

struct Step {
  std::array<float, 4> observation;
  int64_t action;
  float reward;
  bool done;
};
using StepSchema = StructSchema<Step, Member<"observation", &Step::observation>,
                                Member<"action", &Step::action>,
                                Member<"next/reward", &Step::reward, 1>,
                                Member<"next/done", &Step::done, 1>>;

std::vector<Step> MakeStructs() {
  std::vector<Step> steps;
  for (int64_t i = 0; i < kRows; ++i) {
    const float x = static_cast<float>(i);
    steps.push_back({{x, x, x, x}, i, x, i % 7 == 0});
  }
  return steps;
}

// One element, at an index the compiler does not know.
void BM_TypedElement(benchmark::State& state) {
  const auto batch = *ToBatch<StepSchema>(MakeStructs());
  int64_t row = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(row);
    benchmark::DoNotOptimize(batch.Get<"next/reward">()[row][0]);
    row = row == kRows - 1 ? 0 : row + 1;
  }
}
BENCHMARK(BM_TypedElement);

void BM_ToBatch(benchmark::State& state) {
  const std::vector<Step> steps = MakeStructs();
  for (auto _ : state) {
    benchmark::DoNotOptimize(ToBatch<StepSchema>(steps));
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_ToBatch);

void BM_ToBatchInto(benchmark::State& state) {
  const std::vector<Step> steps = MakeStructs();
  auto batch = *ToBatch<StepSchema>(steps);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ToBatchInto<StepSchema>(steps, &batch));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_ToBatchInto);

// The columns of ToBatchInto, as a plain loop.
void BM_ToColumnsByHand(benchmark::State& state) {
  const std::vector<Step> steps = MakeStructs();
  std::vector<float> observation(4 * kRows);
  std::vector<int64_t> action(kRows);
  std::vector<float> reward(kRows);
  std::vector<uint8_t> done(kRows);
  for (auto _ : state) {
    for (int64_t i = 0; i < kRows; ++i) {
      std::memcpy(&observation[4 * i], steps[i].observation.data(), 16);
      action[i] = steps[i].action;
      reward[i] = steps[i].reward;
      done[i] = steps[i].done;
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_ToColumnsByHand);

void BM_StructsInto(benchmark::State& state) {
  std::vector<Step> steps = MakeStructs();
  const auto batch = *ToBatch<StepSchema>(steps);
  for (auto _ : state) {
    benchmark::DoNotOptimize(StructsInto(batch, steps));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_StructsInto);

void BM_FromColumnsByHand(benchmark::State& state) {
  std::vector<Step> steps = MakeStructs();
  const auto batch = *ToBatch<StepSchema>(steps);
  const float* observation = batch.Get<"observation">().data();
  const int64_t* action = batch.Get<"action">().data();
  const float* reward = batch.Get<"next/reward">().data();
  const bool* done = batch.Get<"next/done">().data();
  for (auto _ : state) {
    for (int64_t i = 0; i < kRows; ++i) {
      std::memcpy(steps[i].observation.data(), observation + 4 * i, 16);
      steps[i].action = action[i];
      steps[i].reward = reward[i];
      steps[i].done = done[i];
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_FromColumnsByHand);

void BM_Append(benchmark::State& state) {
  const std::vector<Step> steps = MakeStructs();
  for (auto _ : state) {
    StructAppender<StepSchema> appender;
    appender.Reserve(kRows).IgnoreError();
    for (const Step& step : steps) appender.Append(step).IgnoreError();
    benchmark::DoNotOptimize(appender.Take());
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_Append);

void BM_SetRow(benchmark::State& state) {
  const std::vector<Step> steps = MakeStructs();
  const auto batch = *ToBatch<StepSchema>(steps);
  for (auto _ : state) {
    for (int64_t i = 0; i < kRows; ++i) SetRow(batch, i, steps[i]);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_SetRow);

}  // namespace
}  // namespace rill
