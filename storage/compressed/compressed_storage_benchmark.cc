// SPDX-License-Identifier: Apache-2.0
// CompressedStorage beside DenseStorage, over the same rows in one process.
//
// Rows are one frame [84, 84] and three small leaves. Frames are drawn (flat
// shapes that move on a plain ground) or noise, which does not compress.
// Counters: MiB held, and how many times the dense rows that is.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kSide = 84;
constexpr int64_t kSteps = 512;  // Rows of a batch to write.

enum Kind : int64_t { kDense, kCompressed };

uint8_t Pixel(int64_t step, int64_t y, int64_t x) {
  const int64_t ball_x = step * 3 % kSide;
  const int64_t ball_y = step * 2 % kSide;
  if (std::abs(x - ball_x) < 3 && std::abs(y - ball_y) < 3) return 236;
  if (x > 78 && std::abs(y - step % kSide) < 8) return 147;
  return y < 10 ? 87 : 52;
}

TensorDict Steps(bool is_noise) {
  TensorDict batch({kSteps});
  auto frames = Tensor::Zeros(DType::kUInt8, {kSteps, kSide, kSide});
  auto reward = Tensor::Zeros(DType::kFloat32, {kSteps, 1});
  auto action = Tensor::Zeros(DType::kInt64, {kSteps});
  auto done = Tensor::Zeros(DType::kBool, {kSteps, 1});
  const Rng rng(3);
  for (int64_t i = 0; i < frames->num_elements(); ++i) {
    frames->data<uint8_t>()[i] =
        is_noise ? static_cast<uint8_t>(rng.UniformInt(i, 0, 256))
                 : Pixel(i / (kSide * kSide), i / kSide % kSide, i % kSide);
  }
  for (int64_t i = 0; i < kSteps; ++i) {
    action->data<int64_t>()[i] = rng.UniformInt(i, 1, 6);
  }
  batch.Set("pixels", *std::move(frames)).IgnoreError();
  batch.Set("action", *std::move(action)).IgnoreError();
  batch.Set("next/reward", *std::move(reward)).IgnoreError();
  batch.Set("next/done", *std::move(done)).IgnoreError();
  return batch;
}

std::unique_ptr<Storage> Make(int64_t kind, int64_t capacity,
                              int64_t block_rows) {
  auto storage = kind == kDense
                     ? DenseStorage::Create({.capacity = capacity})
                     : CompressedStorage::Create(
                           {.capacity = capacity, .block_rows = block_rows});
  return storage.ok() ? *std::move(storage) : nullptr;
}

void SetCounters(const Storage& storage, benchmark::State& state) {
  const StorageUsage usage = storage.MemoryUsage();
  const auto plain = static_cast<double>(storage.capacity() * usage.row);
  state.counters["MiB"] = static_cast<double>(usage.memory) / (1 << 20);
  state.counters["x_smaller"] = plain / static_cast<double>(usage.memory);
}

// Args: kind, noise, rows that follow one another (1: each somewhere),
// capacity, rows of a block (0: the default).
void BM_Read(benchmark::State& state) {
  const int64_t capacity = state.range(3);
  const auto storage = Make(state.range(0), capacity, state.range(4));
  if (storage == nullptr) return state.SkipWithError("storage");
  const TensorDict batch = Steps(state.range(1) != 0);
  while (storage->size() < capacity) {
    if (!storage->Extend(batch).ok()) return state.SkipWithError("Extend");
  }
  const int64_t run = state.range(2);
  const Rng rng(1);
  std::vector<std::vector<Slot>> draws(32);
  for (size_t i = 0; i < draws.size(); ++i) {
    for (int64_t k = 0; k < kBatch; k += run) {
      const Slot first =
          rng.UniformInt(i, static_cast<uint32_t>(k), capacity - run + 1);
      for (int64_t j = 0; j < run; ++j) draws[i].push_back(first + j);
    }
  }
  TensorDict rows;
  size_t i = 0;
  for (auto _ : state) {
    if (!storage->Read(draws[i++ % draws.size()], &rows).ok()) {
      state.SkipWithError("Read");
    }
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
  SetCounters(*storage, state);
}

// Args: kind, noise, capacity, rows of a block. To a full ring.
void BM_Extend(benchmark::State& state) {
  const auto storage = Make(state.range(0), state.range(2), state.range(3));
  if (storage == nullptr) return state.SkipWithError("storage");
  const TensorDict batch = Steps(state.range(1) != 0);
  for (auto _ : state) {
    if (!storage->Extend(batch).ok()) state.SkipWithError("Extend");
  }
  state.SetItemsProcessed(state.iterations() * kSteps);
  SetCounters(*storage, state);
}

void AllReads(benchmark::internal::Benchmark* b) {
  for (const int64_t is_noise : {0, 1}) {
    for (const int64_t run : {1, 32}) {
      b->Args({kDense, is_noise, run, 1 << 14, 0});
      for (const int64_t block_rows : {0, 1, 64}) {
        b->Args({kCompressed, is_noise, run, 1 << 14, block_rows});
      }
    }
  }
}
void AllExtends(benchmark::internal::Benchmark* b) {
  for (const int64_t is_noise : {0, 1}) {
    b->Args({kDense, is_noise, 1 << 14, 0});
    for (const int64_t block_rows : {0, 1, 64}) {
      b->Args({kCompressed, is_noise, 1 << 14, block_rows});
    }
  }
}

BENCHMARK(BM_Read)
    ->Name("small/Read")
    ->Args({kDense, 0, 1, kSteps, 0})
    ->Args({kCompressed, 0, 1, kSteps, 0});
BENCHMARK(BM_Extend)
    ->Name("small/Extend")
    ->Args({kDense, 0, kSteps, 0})
    ->Args({kCompressed, 0, kSteps, 0});
BENCHMARK(BM_Read)->Name("Read")->Apply(AllReads);
BENCHMARK(BM_Extend)->Name("Extend")->Apply(AllExtends);

}  // namespace
}  // namespace rill
