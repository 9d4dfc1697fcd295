// SPDX-License-Identifier: Apache-2.0
// Writes of many lanes to a ReplayBuffer, as simulators on a GPU make them: one
// step of thousands of lanes a call, beside 16 lanes of 1,024 steps. And a
// sample right behind such a write. benchmarks/lanes runs it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kSlots = 4 << 20;
constexpr int64_t kSample = 256;
constexpr int64_t kSliceRows = 16;
// Batches that differ in which lanes end, one step in a thousand.
constexpr size_t kBatches = 16;
constexpr int64_t kEpisode = 1000;

enum Kind : int64_t { kUniform, kSlices, kPrioritized };
constexpr const char* kKinds[] = {"uniform", "slices", "prioritized"};

// 97 bytes: HalfCheetah's, without the next observation.
TensorDictSpec Spec() {
  const std::pair<const char*, LeafSpec> leaves[] = {
      {"observation", LeafSpec::Unbounded(DType::kFloat32, {17})},
      {"action", LeafSpec::Unbounded(DType::kFloat32, {6})},
      {"next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})},
      {"next/done", LeafSpec::Binary({1})}};
  TensorDictSpec spec;
  for (const auto& [key, leaf] : leaves) spec.Set(key, leaf).IgnoreError();
  return spec;
}

absl::StatusOr<std::unique_ptr<Sampler>> MakeSamplerOf(int64_t kind) {
  switch (kind) {
    case kSlices:
      return MakeSliceSampler({.length = kSliceRows});
    case kPrioritized:
      return MakePrioritizedSampler();
    default:
      return MakeUniformSampler();
  }
}

// A full buffer, and the batches that are written to it in turn.
struct Lanes {
  std::unique_ptr<ReplayBuffer> buffer;
  std::array<TensorDict, kBatches> batches;
  size_t next = 0;

  absl::Status Write() {
    next = (next + 1) % kBatches;
    return buffer->Extend(batches[next]).status();
  }
};

absl::StatusOr<Lanes> MakeLanes(int64_t slots, int64_t lanes, int64_t steps,
                                bool is_time_major, int64_t kind) {
  Lanes result;
  RILL_ASSIGN_OR_RETURN(
      std::shared_ptr<Storage> storage,
      DenseStorage::Create({.capacity = slots,
                            .lanes = lanes,
                            .order = is_time_major ? StorageOrder::kTimeMajor
                                                   : StorageOrder::kLaneMajor,
                            .spec = Spec()}));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler, MakeSamplerOf(kind));
  RILL_ASSIGN_OR_RETURN(result.buffer,
                        ReplayBuffer::Create({.storage = storage,
                                              .sampler = std::move(sampler),
                                              .batch_size = kSample}));
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, Spec().Zero({lanes, steps}));
  const Rng rng(1);
  for (size_t b = 0; b < kBatches; ++b) {
    result.batches[b] = rows;
    RILL_ASSIGN_OR_RETURN(Tensor done,
                          Tensor::Empty(DType::kBool, {lanes, steps, 1}));
    for (int64_t i = 0; i < done.num_elements(); ++i) {
      done.data<bool>()[i] =
          rng.UniformInt(b, static_cast<uint32_t>(i), kEpisode) == 0;
    }
    RILL_RETURN_IF_ERROR(result.batches[b].Set("next/done", std::move(done)));
  }
  while (result.buffer->size() < slots) RILL_RETURN_IF_ERROR(result.Write());
  return result;
}

absl::StatusOr<Lanes> MakeLanes(const benchmark::State& state) {
  return MakeLanes(state.range(0), state.range(1), state.range(2),
                   state.range(3) != 0, state.range(4));
}

// CPU time; a call is `lanes` x `steps` rows.
void BM_Write(benchmark::State& state) {
  auto lanes = MakeLanes(state);
  if (!lanes.ok())
    return state.SkipWithError(lanes.status().ToString().c_str());
  for (auto _ : state) {
    if (!lanes->Write().ok()) return state.SkipWithError("Extend");
  }
  state.SetLabel(kKinds[state.range(4)]);
  state.counters["row"] =
      benchmark::Counter(static_cast<double>(state.range(1) * state.range(2)),
                         benchmark::Counter::kIsIterationInvariantRate |
                             benchmark::Counter::kInvert);
}

// Copies what BM_Write copies, and does nothing else: row after row to a table
// of as many slots, a step behind the one before.
void BM_Bare(benchmark::State& state) {
  constexpr std::array<int64_t, 4> kWidths = {68, 24, 4, 1};
  constexpr int64_t kStride = 100;
  const int64_t lanes = state.range(1);
  std::vector<std::array<std::vector<std::byte>, kWidths.size()>> batches(
      kBatches);
  for (auto& batch : batches) {
    for (size_t leaf = 0; leaf < kWidths.size(); ++leaf) {
      batch[leaf].assign(static_cast<size_t>(lanes * kWidths[leaf]),
                         std::byte{1});
    }
  }
  std::vector<std::byte> table(static_cast<size_t>(state.range(0) * kStride),
                               std::byte{1});
  int64_t step = 0;
  for (auto _ : state) {
    const auto& batch = batches[static_cast<size_t>(step) % kBatches];
    std::byte* row =
        &table[static_cast<size_t>(step++ * lanes % state.range(0) * kStride)];
    for (int64_t lane = 0; lane < lanes; ++lane, row += kStride) {
      std::memcpy(row, batch[0].data() + lane * 68, 68);
      std::memcpy(row + 68, batch[1].data() + lane * 24, 24);
      std::memcpy(row + 92, batch[2].data() + lane * 4, 4);
      std::memcpy(row + 96, batch[3].data() + lane, 1);
    }
    benchmark::ClobberMemory();
  }
  state.counters["row"] =
      benchmark::Counter(static_cast<double>(lanes),
                         benchmark::Counter::kIsIterationInvariantRate |
                             benchmark::Counter::kInvert);
}

// Samples of 256 rows, a write before each 16 of them that does not count.
void BM_Sample(benchmark::State& state) {
  auto lanes = MakeLanes(state);
  if (!lanes.ok())
    return state.SkipWithError(lanes.status().ToString().c_str());
  TensorDict out;
  int64_t samples = 0;
  for (auto _ : state) {
    if (samples++ % 16 == 0) {
      state.PauseTiming();
      if (!lanes->Write().ok()) return state.SkipWithError("Extend");
      state.ResumeTiming();
    }
    if (!lanes->buffer->SampleInto(&out).ok()) {
      return state.SkipWithError("Sample");
    }
  }
  state.SetLabel(kKinds[state.range(4)]);
}

void Sweep(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"slots", "lanes", "steps", "time_major", "sampler"});
  for (const int64_t kind : {kUniform, kSlices, kPrioritized}) {
    for (const int64_t is_time_major : {0, 1}) {
      benchmark->Args({kSlots, 16, 1024, is_time_major, kind});
      for (const int64_t lanes : {1024, 4096, 16'384, 65'536}) {
        benchmark->Args({kSlots, lanes, 1, is_time_major, kind});
      }
    }
  }
}

BENCHMARK(BM_Bare)
    ->ArgNames({"slots", "lanes"})
    ->Args({kSlots, 16'384})
    ->Args({kSlots, 65'536});
BENCHMARK(BM_Write)->Apply(Sweep);
BENCHMARK(BM_Sample)->Apply(Sweep);

void RegisterSmall() {
  for (const int64_t kind : {kUniform, kSlices, kPrioritized}) {
    for (auto* const benchmark :
         {benchmark::RegisterBenchmark("small/Write", BM_Write),
          benchmark::RegisterBenchmark("small/Sample", BM_Sample)}) {
      benchmark->Args({4096, 128, 1, kind % 2, kind});
    }
  }
}
[[maybe_unused]] const bool kRegistered = (RegisterSmall(), true);

}  // namespace
}  // namespace rill
