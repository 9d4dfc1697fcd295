// SPDX-License-Identifier: Apache-2.0
// Plans of prioritized slices, 256 of 16 rows, of episodes of 1,000 steps.
// Plans run alone and with the update of the priorities of their first rows.
// Appends write 1,000 rows to a full ring.
//   bazel run --config=opt //samplers/units:prioritized_slices_benchmark
#include <cstdint>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/samplers/prioritized_slice_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {
namespace {

constexpr int64_t kSlices = 256;
constexpr int64_t kLength = 16;
constexpr int64_t kEpisode = 1000;

struct Setup {
  explicit Setup(int64_t rows)
      : lanes{.count = 1, .capacity = rows},
        sampler(*MakePrioritizedSliceSampler({}, {.length = kLength})),
        ends(kEpisode) {
    ends.back() = 1;
    const Cursor cursor;
    sampler->observer()->OnAttach(lanes, {&cursor, 1});
    for (int64_t at = 0; at < rows; at += kEpisode) Append(/*is_over=*/false);
    const Rng rng(/*seed=*/1);
    for (int64_t i = 0; i < kSlices; ++i) {
      priorities.push_back(rng.UniformFloat(0, static_cast<uint32_t>(i)));
    }
    // So that priorities are of all sizes.
    for (int64_t i = 0; i < rows / kSlices; ++i) {
      Plan();
      Update();
    }
  }
  void Append(bool is_over) {
    const SlotRange range = {.first = next, .count = kEpisode};
    next = (next + kEpisode) % lanes.capacity;
    WriteEvent event;
    event.is_append = true;
    event.ends = ends;
    event.written = {&range, 1};
    if (is_over) {
      event.retired = {&range, 1};
      sampler->observer()->OnRetire(event);
    }
    sampler->observer()->OnWrite(event);
  }
  void Plan() {
    (void)sampler->Plan(
        {.batch_size = kSlices * kLength, .seed = 1, .batch_number = batch++},
        &plan);
  }
  void Update() { (void)sampler->UpdatePriorities(plan.draws, priorities); }

  const Lanes lanes;
  std::unique_ptr<Sampler> sampler;
  std::vector<uint8_t> ends;
  std::vector<float> priorities;
  SamplePlan plan;
  Slot next = 0;
  uint64_t batch = 0;
};

void BM_Plan(benchmark::State& state) {
  Setup setup(state.range(0));
  for (auto _ : state) setup.Plan();
  state.SetItemsProcessed(state.iterations() * kSlices * kLength);
}

void BM_PlanAndUpdate(benchmark::State& state) {
  Setup setup(state.range(0));
  for (auto _ : state) {
    setup.Plan();
    setup.Update();
  }
  state.SetItemsProcessed(state.iterations() * kSlices * kLength);
}

void BM_Append(benchmark::State& state) {
  Setup setup(state.range(0));
  for (auto _ : state) setup.Append(/*is_over=*/true);
  state.SetItemsProcessed(state.iterations() * kEpisode);
}

#define RILL_ROWS_ Arg(20000)->Arg(5000000)
BENCHMARK(BM_Plan)->RILL_ROWS_;
BENCHMARK(BM_PlanAndUpdate)->RILL_ROWS_;
BENCHMARK(BM_Append)->RILL_ROWS_;

}  // namespace
}  // namespace rill
