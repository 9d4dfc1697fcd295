// SPDX-License-Identifier: Apache-2.0
// Frames a second of whole trajectories, beside those of the collector alone.
// CartPole's episodes have 22 steps where actions are random.
#include <memory>
#include <utility>

#include "benchmark/benchmark.h"
#include "rill/collectors/sources/trajectory_source.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/flow/source.h"

namespace rill {
namespace {

using Format = TrajectorySource::Format;

std::unique_ptr<Source> Collector() {
  SyncCollector::Options options;
  options.env = *MakeCartPole({.lanes = 64});
  options.frames_per_batch = 64 * 64;
  return *SyncCollector::Create(std::move(options));
}

std::unique_ptr<Source> Whole(Format format) {
  TrajectorySource::Options options = {.source = Collector()};
  options.trajectories_per_batch = 186;  // As many frames.
  options.format = format;
  return *TrajectorySource::Create(std::move(options));
}

void Run(benchmark::State& state, std::unique_ptr<Source> source) {
  for (auto _ : state) {
    if (!source->Next().ok()) state.SkipWithError("Next");
  }
  state.SetItemsProcessed(source->frames());
}

void BM_CollectorAlone(benchmark::State& state) { Run(state, Collector()); }
BENCHMARK(BM_CollectorAlone);

void BM_Padded(benchmark::State& state) { Run(state, Whole(Format::kPadded)); }
BENCHMARK(BM_Padded);

void BM_Cat(benchmark::State& state) { Run(state, Whole(Format::kCat)); }
BENCHMARK(BM_Cat);

}  // namespace
}  // namespace rill
