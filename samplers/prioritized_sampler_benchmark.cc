// SPDX-License-Identifier: Apache-2.0
// Plans and updates of 256 rows, and appends to a full ring, beside the cost of
// memory alone. That is 256 loads out of 8 bytes a row that wait for one
// another.
//   bazel run --config=opt //samplers:prioritized_sampler_benchmark
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/testing/dependent_loads.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kBatches = 64;  // So that rows are not in the cache again.

// A sampler over `rows` rows that have had priorities of all sizes.
struct Setup {
  explicit Setup(int64_t rows, int64_t num_lanes = 1)
      : lanes{.count = num_lanes, .capacity = rows / num_lanes},
        sampler(*MakePrioritizedSampler()) {
    const std::vector<Cursor> cursors(lanes.count);
    sampler->observer()->OnAttach(lanes, cursors);
    std::vector<double> given(lanes.num_slots());
    for (size_t i = 0; i < given.size(); ++i) {
      given[i] = rng.UniformDouble(0, static_cast<uint32_t>(i));
    }
    for (int64_t lane = 0; lane < lanes.count; ++lane) {
      const SlotRange range = {.first = lanes.SlotOf(lane, 0),
                               .count = lanes.capacity};
      WriteEvent event;
      event.written = {&range, 1};
      event.priorities =
          absl::MakeConstSpan(given).subspan(range.first, range.count);
      sampler->observer()->OnWrite(event);
    }
    for (int64_t i = 0; i < kBatch * kBatches; ++i) {
      priorities.push_back(rng.UniformFloat(1, static_cast<uint32_t>(i)));
    }
  }
  void Plan() {
    (void)sampler->Plan(
        {.batch_size = kBatch, .seed = 1, .batch_number = batch++}, &plan);
  }
  void Update() {
    (void)sampler->UpdatePriorities(
        plan.draws, absl::MakeConstSpan(priorities)
                        .subspan(batch % kBatches * kBatch, kBatch));
  }

  const Rng rng{/*seed=*/1};
  const Lanes lanes;
  std::unique_ptr<Sampler> sampler;
  std::vector<float> priorities;
  SamplePlan plan;
  uint64_t batch = 0;
};

void BM_PlanAndUpdate(benchmark::State& state) {
  Setup setup(state.range(0));
  for (auto _ : state) {
    setup.Plan();
    setup.Update();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void BM_Plan(benchmark::State& state) {
  Setup setup(state.range(0));
  for (auto _ : state) setup.Plan();
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// A step of 64 lanes at once, each row over an old one.
void BM_Append(benchmark::State& state) {
  Setup setup(state.range(0), /*num_lanes=*/64);
  int64_t position = 0;
  std::vector<SlotRange> ranges;
  for (auto _ : state) {
    ranges.clear();
    for (int64_t lane = 0; lane < 64; ++lane) {
      ranges.push_back(
          {.first = setup.lanes.SlotOf(lane, position), .count = 1});
    }
    position = (position + 1) % setup.lanes.capacity;
    WriteEvent event;
    event.retired = ranges;
    event.written = ranges;
    setup.sampler->observer()->OnRetire(event);
    setup.sampler->observer()->OnWrite(event);
  }
  state.SetItemsProcessed(state.iterations() * 64);
}

void BM_DependentLoads(benchmark::State& state) {
  DependentLoads(state, state.range(0), kBatch);
}

#define RILL_ROWS_ Arg(1 << 14)->Arg(1000000)->Arg(10000000)
BENCHMARK(BM_PlanAndUpdate)->RILL_ROWS_;
BENCHMARK(BM_Plan)->RILL_ROWS_;
BENCHMARK(BM_Append)->RILL_ROWS_;
BENCHMARK(BM_DependentLoads)->RILL_ROWS_;

}  // namespace
}  // namespace rill
