// SPDX-License-Identifier: Apache-2.0
// A full ring of N rows in episodes of 1,000. Measures a write of 1,000 rows, a
// draw of 32 slices of 16 rows, and building the index from flags.
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {
namespace {

constexpr int64_t kEpisode = 1000;
constexpr int64_t kSlice = 16;

std::vector<uint8_t> Flags(int64_t rows) {
  std::vector<uint8_t> flags(rows, 0);
  for (int64_t i = kEpisode - 1; i < rows; i += kEpisode) flags[i] = 1;
  return flags;
}

void Build(const std::vector<uint8_t>& flags, TrajectoryIndex* index) {
  const auto rows = static_cast<int64_t>(flags.size());
  const Cursor cursor = {.written = rows};
  const SlotRange all = {.first = 0, .count = rows};
  WriteEvent event;
  event.written = {&all, 1};
  event.ends = flags;
  index->OnAttach({.count = 1, .capacity = rows}, {&cursor, 1});
  index->OnWrite(event);
}

std::vector<StartRule> Rules() { return {{.length = kSlice}}; }

void BuildFromFlags(benchmark::State& state) {
  const std::vector<uint8_t> flags = Flags(state.range(0));
  for (auto _ : state) {
    TrajectoryIndex index(Rules());
    Build(flags, &index);
    benchmark::DoNotOptimize(index.num_trajectories());
    state.counters["bytes"] = static_cast<double>(index.memory_bytes());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BuildFromFlags)
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Arg(346'000'000)
    ->Unit(benchmark::kMillisecond);

void Append1000(benchmark::State& state) {
  TrajectoryIndex index(Rules());
  Build(Flags(state.range(0)), &index);
  // Ends do not fall on the borders of writes.
  std::vector<uint8_t> flags(1000, 0);
  flags[500] = 1;
  SlotRange range = {.first = 0, .count = 1000};
  WriteEvent event;
  event.retired = {&range, 1};
  event.written = {&range, 1};
  event.ends = flags;
  for (auto _ : state) {
    index.OnRetire(event);
    index.OnWrite(event);
    range.first = (range.first + 1000) % state.range(0);
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(Append1000)->Arg(1'000'000)->Arg(10'000'000)->Arg(346'000'000);

// append(batch, i, &slots) appends the slots of draw i.
template <typename Append>
void Draw32(benchmark::State& state, const Append& append) {
  std::vector<Slot> slots;
  uint64_t batch = 0;
  for (auto _ : state) {
    slots.clear();
    ++batch;
    for (uint32_t i = 0; i < 32; ++i) append(batch, i, &slots);
    benchmark::DoNotOptimize(slots.data());
  }
}

void Draw32Slices(benchmark::State& state) {
  TrajectoryIndex index(Rules());
  Build(Flags(state.range(0)), &index);
  const Rng rng(7);
  Draw32(state, [&](uint64_t batch, uint32_t i, std::vector<Slot>* slots) {
    const auto members = index.starts(0).members();
    const int32_t trajectory =
        members[rng.UniformInt(batch, 2 * i, members.size())];
    const int64_t start =
        rng.UniformInt(batch, 2 * i + 1, index.starts(0).WeightOf(trajectory));
    index.AppendSlots(trajectory, start, kSlice, slots);
  });
}
BENCHMARK(Draw32Slices)->Arg(1'000'000)->Arg(10'000'000)->Arg(346'000'000);

void Draw32SlicesByRow(benchmark::State& state) {
  TrajectoryIndex index(Rules());
  Build(Flags(state.range(0)), &index);
  const Rng rng(7);
  Draw32(state, [&](uint64_t batch, uint32_t i, std::vector<Slot>* slots) {
    const auto hit =
        index.starts(0).Find(rng.UniformInt(batch, i, index.starts(0).total()));
    index.AppendSlots(hit.member, hit.rest, kSlice, slots);
  });
}
BENCHMARK(Draw32SlicesByRow)->Arg(1'000'000)->Arg(10'000'000)->Arg(346'000'000);

void FindSlot(benchmark::State& state) {
  TrajectoryIndex index(Rules());
  Build(Flags(state.range(0)), &index);
  const Rng rng(7);
  uint32_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        index.Find(rng.UniformInt(0, ++i, state.range(0)))->offset);
  }
}
BENCHMARK(FindSlot)->Arg(1'000'000)->Arg(10'000'000)->Arg(346'000'000);

}  // namespace
}  // namespace rill
