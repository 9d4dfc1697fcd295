// SPDX-License-Identifier: Apache-2.0
// DenseStorage beside hand-written loops over the same layout, in one process.
//
// Rows have 7 leaves: observation and next/observation, an action, a reward and
// three flags; the label says how many bytes that is.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

constexpr int64_t kBatch = 256;

struct RowKind {
  const char* name;
  std::vector<std::pair<const char*, LeafSpec>> leaves;
  int64_t capacity;
};

const RowKind& Kind(int64_t number) {
  static const std::vector<RowKind>* const kinds = [] {
    const LeafSpec flag = LeafSpec::Binary({1});
    const LeafSpec reward = LeafSpec::Unbounded(DType::kFloat32, {1});
    const LeafSpec action = LeafSpec::Unbounded(DType::kInt64, {});
    const auto rows = [&](DType dtype, int64_t size) {
      const LeafSpec seen = LeafSpec::Unbounded(dtype, {size});
      return std::vector<std::pair<const char*, LeafSpec>>{
          {"observation", seen},      {"action", action},
          {"next/observation", seen}, {"next/reward", reward},
          {"next/done", flag},        {"next/terminated", flag},
          {"next/truncated", flag}};
    };
    return new std::vector<RowKind>{
        {"47B", rows(DType::kFloat32, 4), int64_t{1} << 20},
        {"143B", rows(DType::kFloat32, 16), int64_t{1} << 20},
        {"527B", rows(DType::kFloat32, 64), int64_t{1} << 18},
        {"1.5KB", rows(DType::kFloat32, 188), int64_t{1} << 17},
        {"3KB", rows(DType::kFloat32, 376), int64_t{1} << 16},
        {"28KB", rows(DType::kUInt8, 14112), int64_t{1} << 13},
    };
  }();
  return (*kinds)[number];
}

TensorDictSpec SpecOf(const RowKind& kind) {
  TensorDictSpec spec;
  for (const auto& [key, leaf] : kind.leaves) {
    spec.Set(key, leaf).IgnoreError();
  }
  return spec;
}

std::unique_ptr<Storage> Filled(const RowKind& kind, StorageLayout layout,
                                int64_t capacity) {
  auto storage = DenseStorage::Create(
      {.capacity = capacity, .layout = layout, .spec = SpecOf(kind)});
  if (!storage.ok()) return nullptr;
  auto batch = SpecOf(kind).Zero({1024});
  while (batch.ok() && (*storage)->size() < capacity) {
    if (!(*storage)->Extend(*batch).ok()) return nullptr;
  }
  return *std::move(storage);
}

// So many draws that a run does not see a row twice soon.
std::vector<std::vector<Slot>> Draws(int64_t capacity, int64_t n = kBatch) {
  const Rng rng(1);
  std::vector<std::vector<Slot>> draws(512);
  for (size_t i = 0; i < draws.size(); ++i) {
    for (int64_t k = 0; k < n; ++k) {
      draws[i].push_back(rng.UniformInt(i, static_cast<uint32_t>(k), capacity));
    }
  }
  return draws;
}

// Storage::Read of kBatch random rows into a reused batch.
void BM_Gather(benchmark::State& state) {
  const RowKind& kind = Kind(state.range(0));
  const auto layout = static_cast<StorageLayout>(state.range(1));
  const int64_t capacity = state.range(2) == 0 ? kind.capacity : state.range(2);
  const auto storage = Filled(kind, layout, capacity);
  const auto draws = Draws(capacity);
  TensorDict rows;
  size_t i = 0;
  for (auto _ : state) {
    if (!storage->Read(draws[i++ % draws.size()], &rows).ok()) {
      state.SkipWithError("Read");
    }
  }
  state.SetLabel(std::string(kind.name) +
                 (layout == StorageLayout::kRows ? " rows" : " columns"));
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// What a person would write for the 64-byte record: prefetch all rows, then one
// pass a column into arrays of their own.
struct Record {
  int64_t action;
  float observation[4];
  float next_observation[4];
  float reward;
  bool done, terminated, truncated;
  char pad[17];
};
static_assert(sizeof(Record) == 64);

struct Columns {
  std::vector<int64_t> action = std::vector<int64_t>(kBatch);
  std::vector<float> observation = std::vector<float>(4 * kBatch);
  std::vector<float> next_observation = std::vector<float>(4 * kBatch);
  std::vector<float> reward = std::vector<float>(kBatch);
  std::vector<uint8_t> done = std::vector<uint8_t>(kBatch);
  std::vector<uint8_t> terminated = std::vector<uint8_t>(kBatch);
  std::vector<uint8_t> truncated = std::vector<uint8_t>(kBatch);
};

void GatherByHand(const Record* table, const std::vector<Slot>& slots,
                  Columns& out) {
  for (const Slot slot : slots) __builtin_prefetch(table + slot);
  const size_t n = slots.size();
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(&out.observation[4 * i], table[slots[i]].observation, 16);
  }
  for (size_t i = 0; i < n; ++i) out.action[i] = table[slots[i]].action;
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(&out.next_observation[4 * i], table[slots[i]].next_observation,
                16);
  }
  for (size_t i = 0; i < n; ++i) out.reward[i] = table[slots[i]].reward;
  for (size_t i = 0; i < n; ++i) out.done[i] = table[slots[i]].done;
  for (size_t i = 0; i < n; ++i) {
    out.terminated[i] = table[slots[i]].terminated;
  }
  for (size_t i = 0; i < n; ++i) out.truncated[i] = table[slots[i]].truncated;
}

void BM_GatherByHand(benchmark::State& state) {
  const int64_t capacity = state.range(0);
  auto buffer = Buffer::Allocate(capacity * 64);
  if (!buffer.ok()) return state.SkipWithError("memory");
  std::memset((*buffer)->data(), 0, capacity * 64);
  const Record* table = reinterpret_cast<const Record*>((*buffer)->data());
  const auto draws = Draws(capacity);
  Columns out;
  size_t i = 0;
  for (auto _ : state) {
    GatherByHand(table, draws[i++ % draws.size()], out);
    benchmark::DoNotOptimize(out.action.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// Storage::Extend of so many rows to a full ring.
void BM_Extend(benchmark::State& state) {
  const RowKind& kind = Kind(state.range(0));
  const auto layout = static_cast<StorageLayout>(state.range(1));
  const int64_t capacity = state.range(3) == 0 ? kind.capacity : state.range(3);
  const auto storage = Filled(kind, layout, capacity);
  const auto batch = SpecOf(kind).Zero({state.range(2)});
  if (!batch.ok()) return state.SkipWithError("batch");
  for (auto _ : state) {
    if (!storage->Extend(*batch).ok()) state.SkipWithError("Extend");
  }
  state.SetLabel(std::string(kind.name) +
                 (layout == StorageLayout::kRows ? " rows" : " columns"));
  state.SetItemsProcessed(state.iterations() * state.range(2));
}

void BM_ExtendByHand(benchmark::State& state) {
  const int64_t capacity = state.range(1);
  const int64_t steps = state.range(0);
  auto buffer = Buffer::Allocate(capacity * 64);
  if (!buffer.ok()) return state.SkipWithError("memory");
  std::memset((*buffer)->data(), 0, capacity * 64);
  Record* table = reinterpret_cast<Record*>((*buffer)->data());
  std::vector<int64_t> action(steps);
  std::vector<float> observation(4 * steps), next(4 * steps), reward(steps);
  std::vector<uint8_t> flags(3 * steps);
  int64_t cursor = 0;
  for (auto _ : state) {
    for (int64_t i = 0; i < steps; ++i) {
      Record& row = table[cursor];
      cursor = cursor + 1 == capacity ? 0 : cursor + 1;
      row.action = action[i];
      std::memcpy(row.observation, &observation[4 * i], 16);
      std::memcpy(row.next_observation, &next[4 * i], 16);
      row.reward = reward[i];
      row.done = flags[i] != 0;
      row.terminated = flags[steps + i] != 0;
      row.truncated = flags[2 * steps + i] != 0;
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * steps);
}

constexpr int64_t kRows = static_cast<int64_t>(StorageLayout::kRows);
constexpr int64_t kColumns = static_cast<int64_t>(StorageLayout::kColumns);

// Small ones for the smoke run: --benchmark_filter=.*/small.*
void SmallGather(benchmark::internal::Benchmark* b) {
  b->Args({0, kRows, 1024})->Args({0, kColumns, 1024});
}
void AllGathers(benchmark::internal::Benchmark* b) {
  for (int64_t kind = 0; kind < 6; ++kind) {
    b->Args({kind, kRows, 0})->Args({kind, kColumns, 0});
  }
}
void AllExtends(benchmark::internal::Benchmark* b) {
  for (const int64_t steps : {1, 1000}) {
    for (const int64_t kind : {0, 3, 5}) {
      b->Args({kind, kRows, steps, 0})->Args({kind, kColumns, steps, 0});
    }
  }
}

BENCHMARK(BM_Gather)->Name("small/Gather")->Apply(SmallGather);
BENCHMARK(BM_GatherByHand)->Name("small/GatherByHand")->Arg(1024);
BENCHMARK(BM_Extend)->Name("small/Extend")->Args({0, kRows, 8, 1024});
BENCHMARK(BM_ExtendByHand)->Name("small/ExtendByHand")->Args({8, 1024});
BENCHMARK(BM_Gather)->Name("Gather")->Apply(AllGathers);
BENCHMARK(BM_GatherByHand)->Name("GatherByHand")->Arg(1 << 20);
BENCHMARK(BM_Extend)->Name("Extend")->Apply(AllExtends);
BENCHMARK(BM_ExtendByHand)
    ->Name("ExtendByHand")
    ->Args({1, 1 << 20})
    ->Args({1000, 1 << 20});

}  // namespace
}  // namespace rill
