// SPDX-License-Identifier: Apache-2.0
// A reader's Latest without news, and with 1 MB of news that is read to the
// last byte, published by the same thread or by another; Publish of the same.
// Beside them what the machine does with the same bytes: read, and copied.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/log/check.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "rill/base/clock.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kWords = 1000 * 1000 / 8;

TensorDict Weights() {
  TensorDict weights;
  CHECK(weights.Set("w", *Tensor::Zeros(DType::kInt64, {kWords})).ok());
  return weights;
}

int64_t Sum(const int64_t* words) {
  int64_t sum = 0;
  for (int64_t i = 0; i < kWords; ++i) sum += words[i];
  return sum;
}

int64_t Sum(const WeightStore::Snapshot& snapshot) {
  return Sum(snapshot.weights.Find("w")->data<int64_t>());
}

// Times what `fn` does, and nothing else of the iteration.
template <typename F>
void Count(benchmark::State& state, F fn) {
  const absl::Time begin = Clock::System().Now();
  benchmark::DoNotOptimize(fn());
  state.SetIterationTime(absl::ToDoubleSeconds(Clock::System().Now() - begin));
}

void BM_LatestWithoutNews(benchmark::State& state) {
  const auto store = *WeightStore::Create({.weights = Weights()});
  const auto reader = *store->OpenReader();
  for (auto _ : state) benchmark::DoNotOptimize(reader->Latest().version);
}
BENCHMARK(BM_LatestWithoutNews);

template <typename Read>
void LatestWithNews(benchmark::State& state, Read read) {
  const auto store = *WeightStore::Create({.weights = Weights()});
  const auto reader = *store->OpenReader();
  const TensorDict weights = Weights();
  for (auto _ : state) {
    CHECK(store->Publish(weights).ok());
    Count(state, [&] { return read(reader->Latest()); });
  }
}

// Without the bytes: what the pins cost.
void BM_LatestWithNewsUnread(benchmark::State& state) {
  LatestWithNews(state, [](const auto& latest) { return latest.version; });
}
// Each takes a Publish that is not counted.
BENCHMARK(BM_LatestWithNewsUnread)->UseManualTime()->Iterations(2000);

void BM_LatestWithNews(benchmark::State& state) {
  LatestWithNews(state, [](const auto& latest) { return Sum(latest); });
  state.SetBytesProcessed(state.iterations() * kWords * 8);
}
BENCHMARK(BM_LatestWithNews)->UseManualTime();

void BM_LatestWithNewsOfAnotherThread(benchmark::State& state) {
  const auto store = *WeightStore::Create({.weights = Weights()});
  const auto reader = *store->OpenReader();
  std::atomic<int64_t> asked = 0;
  std::thread writer([&] {
    const TensorDict weights = Weights();
    for (int64_t seen = 0; seen >= 0;) {
      const int64_t now = asked.load();
      if (now > seen) CHECK(store->Publish(weights).ok());
      if (now == seen) std::this_thread::yield();
      seen = now;
    }
  });
  int64_t version = 0;
  for (auto _ : state) {
    asked.store(++version);
    while (store->version() < version) std::this_thread::yield();
    Count(state, [&] { return Sum(reader->Latest()); });
  }
  asked.store(-1);
  writer.join();
  state.SetBytesProcessed(state.iterations() * kWords * 8);
}
BENCHMARK(BM_LatestWithNewsOfAnotherThread)->UseManualTime();

void BM_Publish(benchmark::State& state) {
  const auto store = *WeightStore::Create({.weights = Weights()});
  const auto reader = *store->OpenReader();
  const TensorDict weights = Weights();
  for (auto _ : state) {
    CHECK(store->Publish(weights).ok());
    benchmark::DoNotOptimize(reader->Latest().version);
  }
  state.SetBytesProcessed(state.iterations() * kWords * 8);
}
BENCHMARK(BM_Publish);

void BM_ReadOfTheSameBytes(benchmark::State& state) {
  const std::vector<int64_t> words(kWords, 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(words.data());
    benchmark::DoNotOptimize(Sum(words.data()));
  }
  state.SetBytesProcessed(state.iterations() * kWords * 8);
}
BENCHMARK(BM_ReadOfTheSameBytes);

// Between three buffers, as the store has then.
void BM_CopyOfTheSameBytes(benchmark::State& state) {
  const std::vector<int64_t> from(kWords, 1);
  std::vector<std::vector<int64_t>> to(3, from);
  size_t next = 0;
  for (auto _ : state) {
    std::memcpy(to[next].data(), from.data(), kWords * 8);
    benchmark::ClobberMemory();
    next = (next + 1) % to.size();
  }
  state.SetBytesProcessed(state.iterations() * kWords * 8);
}
BENCHMARK(BM_CopyOfTheSameBytes);

}  // namespace
}  // namespace rill
