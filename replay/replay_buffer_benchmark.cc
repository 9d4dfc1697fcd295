// SPDX-License-Identifier: Apache-2.0
// Whole samples beside the bare gather of as many rows, in one process; how
// long a learner waits for batches that are made ahead; writes beside samples.
//   bazel run --config=opt //replay:replay_buffer_benchmark
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

constexpr int64_t kBatch = 256;

struct RowKind {
  const char* name;
  DType dtype;
  int64_t observation;
  int64_t capacity;
};
constexpr RowKind kKinds[] = {
    {"47B", DType::kFloat32, 4, 1'000'000},
    {"3KB", DType::kFloat32, 376, 100'000},
    {"56KB", DType::kUInt8, 28'224, 8'192},
    {"small", DType::kFloat32, 4, 512},
};

TensorDictSpec SpecOf(const RowKind& kind) {
  const LeafSpec seen = LeafSpec::Unbounded(kind.dtype, {kind.observation});
  const LeafSpec flag = LeafSpec::Binary({1});
  const std::pair<const char*, LeafSpec> leaves[] = {
      {"observation", seen},
      {"action", LeafSpec::Unbounded(DType::kInt64, {})},
      {"next/observation", seen},
      {"next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})},
      {"next/done", flag},
      {"next/terminated", flag},
      {"next/truncated", flag}};
  TensorDictSpec spec;
  for (const auto& [key, leaf] : leaves) spec.Set(key, leaf).IgnoreError();
  return spec;
}

std::shared_ptr<Storage> Filled(const RowKind& kind) {
  auto storage =
      DenseStorage::Create({.capacity = kind.capacity, .spec = SpecOf(kind)});
  auto batch = SpecOf(kind).Zero({512});
  if (!storage.ok() || !batch.ok()) return nullptr;
  while ((*storage)->size() < kind.capacity) {
    if (!(*storage)->Extend(*batch).ok()) return nullptr;
  }
  return *std::move(storage);
}

std::unique_ptr<ReplayBuffer> BufferOver(std::shared_ptr<Storage> storage,
                                         int64_t prefetch = 0) {
  auto buffer = ReplayBuffer::Create({.storage = std::move(storage),
                                      .sampler = MakeUniformSampler(),
                                      .batch_size = kBatch,
                                      .prefetch = prefetch});
  return buffer.ok() ? *std::move(buffer) : nullptr;
}

// Storage::Read of rows that were drawn before.
void BM_Gather(benchmark::State& state) {
  const RowKind& kind = kKinds[state.range(0)];
  const auto storage = Filled(kind);
  const Rng rng(1);
  std::vector<std::vector<Slot>> draws(512);
  for (size_t i = 0; i < draws.size(); ++i) {
    for (uint32_t k = 0; k < kBatch; ++k) {
      draws[i].push_back(rng.UniformInt(i, k, kind.capacity));
    }
  }
  TensorDict out;
  size_t i = 0;
  for (auto _ : state) {
    if (!storage->Read(draws[i++ % draws.size()], &out).ok()) {
      state.SkipWithError("Read");
    }
  }
  state.SetLabel(kind.name);
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void BM_Sample(benchmark::State& state) {
  const RowKind& kind = kKinds[state.range(0)];
  const auto buffer = BufferOver(Filled(kind));
  TensorDict out;
  for (auto _ : state) {
    if (!buffer->SampleInto(&out).ok()) state.SkipWithError("Sample");
  }
  state.SetLabel(kind.name);
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// A learner that works 1 ms a batch: the share of its time that it waits.
void BM_LearnerWaits(benchmark::State& state) {
  const RowKind& kind = kKinds[state.range(0)];
  const auto buffer = BufferOver(Filled(kind), state.range(1));
  const Clock& clock = Clock::System();
  TensorDict out;
  if (!buffer->SampleInto(&out).ok()) return state.SkipWithError("Sample");
  absl::Duration waited = absl::ZeroDuration();
  const absl::Time begin = clock.Now();
  for (auto _ : state) {
    const absl::Time until = clock.Now() + absl::Milliseconds(1);
    while (clock.Now() < until) {
    }
    const absl::Time asked = clock.Now();
    if (!buffer->SampleInto(&out).ok()) state.SkipWithError("Sample");
    waited += clock.Now() - asked;
  }
  state.SetLabel(kind.name);
  state.counters["waits"] = absl::FDivDuration(waited, clock.Now() - begin);
}

// 1,000 rows at a time, alone (0) or beside a thread that samples all the time.
void BM_Extend(benchmark::State& state) {
  const RowKind& kind = kKinds[state.range(0)];
  const auto buffer = BufferOver(Filled(kind));
  const auto batch = SpecOf(kind).Zero({1000});
  if (!batch.ok()) return state.SkipWithError("batch");
  std::atomic<bool> is_done = false;
  std::thread sampler([&] {
    TensorDict out;
    while (state.range(1) > 0 && !is_done) {
      if (!buffer->SampleInto(&out).ok()) return;
    }
  });
  for (auto _ : state) {
    if (!buffer->Extend(*batch).ok()) state.SkipWithError("Extend");
  }
  is_done = true;
  sampler.join();
  state.SetLabel(kind.name);
  state.SetItemsProcessed(state.iterations() * 1000);
}

BENCHMARK(BM_Gather)->DenseRange(0, 2);
BENCHMARK(BM_Sample)->DenseRange(0, 2);
BENCHMARK(BM_LearnerWaits)->Args({2, 0})->Args({2, 2})->UseRealTime();
BENCHMARK(BM_Extend)->ArgsProduct({{0, 1}, {0, 1}})->UseRealTime();

void RegisterSmall() {
  benchmark::RegisterBenchmark("small/Gather", BM_Gather)->Arg(3);
  benchmark::RegisterBenchmark("small/Sample", BM_Sample)->Arg(3);
  benchmark::RegisterBenchmark("small/LearnerWaits", BM_LearnerWaits)
      ->Args({3, 2});
  benchmark::RegisterBenchmark("small/Extend", BM_Extend)->Args({3, 1});
}
[[maybe_unused]] const bool kRegistered = (RegisterSmall(), true);

}  // namespace
}  // namespace rill
