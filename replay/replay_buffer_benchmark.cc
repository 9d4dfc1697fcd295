// SPDX-License-Identifier: Apache-2.0
// Whole samples beside the bare gather of as many rows, in one process. Also
// how long a learner waits for batches that are made ahead, and writes beside
// samples.
//   bazel run --config=opt //replay:replay_buffer_benchmark
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

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
                                         int64_t prefetch = 0,
                                         int threads = 1) {
  auto buffer = ReplayBuffer::Create({.storage = std::move(storage),
                                      .sampler = MakeUniformSampler(),
                                      .batch_size = kBatch,
                                      .prefetch = prefetch,
                                      .prefetch_threads = threads});
  return buffer.ok() ? *std::move(buffer) : nullptr;
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A gather for one known record: records of one struct, a loop over the rows,
// each leaf and the rows' numbers into arrays of their own.
template <size_t kBytes>
class ByHand {
 public:
  explicit ByHand(int64_t capacity)
      : table_(Buffer::Allocate(capacity * int64_t{sizeof(Row)})),
        batch_(Buffer::Allocate(kBatch * int64_t{sizeof(Row) + 8})) {
    std::memset((*table_)->data(), 0, (*table_)->size_bytes());
    std::memset((*batch_)->data(), 0, (*batch_)->size_bytes());
  }

  void operator()(absl::Span<const Slot> slots) {
    const Row* const rows = reinterpret_cast<const Row*>((*table_)->data());
    std::byte* const seen = (*batch_)->data();
    std::byte* const next = seen + kBatch * kBytes;
    auto* const actions = reinterpret_cast<int64_t*>(next + kBatch * kBytes);
    int64_t* const index = actions + kBatch;
    auto* const rewards = reinterpret_cast<float*>(index + kBatch);
    auto* const flags = reinterpret_cast<bool*>(rewards + kBatch);
    for (size_t i = 0; i < slots.size(); ++i) {
      const Row& row = rows[slots[i]];
      std::memcpy(seen + i * kBytes, row.seen, kBytes);
      std::memcpy(next + i * kBytes, row.next, kBytes);
      actions[i] = row.action;
      index[i] = slots[i];
      rewards[i] = row.reward;
      for (size_t k = 0; k < 3; ++k) flags[k * kBatch + i] = row.flags[k];
    }
    benchmark::ClobberMemory();
  }

 private:
  struct Row {
    int64_t action;
    std::byte seen[kBytes];
    std::byte next[kBytes];
    float reward;
    bool flags[3];
  };
  absl::StatusOr<std::shared_ptr<Buffer>> table_, batch_;
};

std::function<void(absl::Span<const Slot>)> ByHandOf(const RowKind& kind) {
  switch (kind.observation * DTypeSize(kind.dtype)) {
    case 16:
      return ByHand<16>(kind.capacity);
    case 1504:
      return ByHand<1504>(kind.capacity);
    default:
      return ByHand<28224>(kind.capacity);
  }
}

// Alternates whole samples, Storage::Read of as many random rows into a batch
// of their own, and a hand-written loop. All find rows that nobody saw lately,
// and meet the same machine. Medians of turns, in us a batch.
void BM_Sample(benchmark::State& state) {
  constexpr size_t kTurn = 16;
  const RowKind& kind = kKinds[state.range(0)];
  const std::shared_ptr<Storage> storage = Filled(kind);
  const auto buffer = BufferOver(storage);
  const Clock& clock = Clock::System();
  const Rng rng(1);
  std::vector<std::vector<Slot>> draws(kTurn, std::vector<Slot>(kBatch));
  auto by_hand = ByHandOf(kind);
  std::vector<double> sample_times;
  std::vector<double> gather_times;
  std::vector<double> hand_times;
  TensorDict sampled;
  TensorDict gathered;
  uint64_t batch = 0;
  for (auto _ : state) {
    for (std::vector<Slot>& slots : draws) {
      for (uint32_t k = 0; k < kBatch; ++k) {
        slots[k] = rng.UniformInt(batch, k, kind.capacity);
      }
      ++batch;
    }
    const absl::Time begin = clock.Now();
    for (size_t i = 0; i < kTurn; ++i) {
      if (!buffer->SampleInto(&sampled).ok()) state.SkipWithError("Sample");
    }
    const absl::Time middle = clock.Now();
    for (const std::vector<Slot>& slots : draws) {
      if (!storage->Read(slots, &gathered).ok()) state.SkipWithError("Read");
    }
    const absl::Time end = clock.Now();
    for (const std::vector<Slot>& slots : draws) by_hand(slots);
    const absl::Duration loops = clock.Now() - end;
    const absl::Duration gathers = end - middle;
    hand_times.push_back(absl::ToDoubleMicroseconds(loops) / kTurn);
    sample_times.push_back(absl::ToDoubleMicroseconds(middle - begin) / kTurn);
    gather_times.push_back(absl::ToDoubleMicroseconds(gathers) / kTurn);
    state.SetIterationTime(absl::ToDoubleSeconds(middle - begin));
  }
  const double sample = MedianOf(std::move(sample_times));
  const double gather = MedianOf(std::move(gather_times));
  state.SetLabel(kind.name);
  state.counters["sample_us"] = sample;
  state.counters["gather_us"] = gather;
  state.counters["ratio"] = sample / gather;
  const double hand = MedianOf(std::move(hand_times));
  state.counters["by_hand_us"] = hand;
  state.counters["of_by_hand"] = sample / hand;
}

// A batch by priority and its new priorities, from one end of the buffer to the
// other, over rows that have had priorities of all sizes.
void BM_PrioritizedSampleAndUpdate(benchmark::State& state) {
  RowKind kind = kKinds[0];
  kind.capacity = state.range(0);
  const std::shared_ptr<Storage> storage = Filled(kind);
  auto sampler = MakePrioritizedSampler();
  if (!sampler.ok()) return state.SkipWithError("MakePrioritizedSampler");
  auto buffer = ReplayBuffer::Create({.storage = storage,
                                      .sampler = *std::move(sampler),
                                      .batch_size = kBatch});
  if (!buffer.ok()) return state.SkipWithError("Create");
  const Rng rng(1);
  std::vector<float> priorities(64 * kBatch);
  for (size_t i = 0; i < priorities.size(); ++i) {
    priorities[i] = rng.UniformFloat(0, static_cast<uint32_t>(i));
  }
  size_t at = 0;
  const auto next = [&] {
    at = (at + kBatch) % priorities.size();
    return absl::MakeConstSpan(priorities).subspan(at, kBatch);
  };
  TensorDict out;
  const int64_t rounds = 2 * kind.capacity / kBatch;
  for (int64_t i = 0; i < rounds; ++i) {
    if (!(*buffer)->SampleInto(&out).ok() ||
        !(*buffer)->UpdatePriorities(out, next()).ok()) {
      return state.SkipWithError("Sample");
    }
  }
  for (auto _ : state) {
    (*buffer)->SampleInto(&out).IgnoreError();
    (*buffer)->UpdatePriorities(out, next()).IgnoreError();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// The time in ms of a batch of random rows, for one thread that does nothing
// else. It alternates between as many batches as a buffer uses that makes
// `prefetch` ahead.
double GatherMs(const Storage& storage, int64_t prefetch) {
  const Rng rng(2);
  std::vector<TensorDict> batches(prefetch + 2);
  std::vector<Slot> slots(kBatch);
  std::vector<double> times;
  for (uint64_t i = 0; i < 128; ++i) {
    for (uint32_t k = 0; k < kBatch; ++k) {
      slots[k] = rng.UniformInt(i, k, storage.capacity());
    }
    const absl::Time begin = Clock::System().Now();
    if (!storage.Read(slots, &batches[i % batches.size()]).ok()) return -1;
    times.push_back(absl::ToDoubleMilliseconds(Clock::System().Now() - begin));
  }
  return MedianOf(std::move(times));
}

// A learner whose step takes 1 ms, busy on its core (0) or asleep, as one that
// waits for a device is (1). Reports the share of its time that it waits for
// samples, the time of one call, and that of the gather alone. One thread
// cannot make it wait less than (gather_ms - step_ms) / gather_ms.
void BM_LearnerWaits(benchmark::State& state) {
  const RowKind& kind = kKinds[state.range(0)];
  const auto storage = Filled(kind);
  const double gather_ms = GatherMs(*storage, state.range(1));
  const auto buffer =
      BufferOver(storage, state.range(1), static_cast<int>(state.range(2)));
  const bool is_asleep = state.range(3) != 0;
  const Clock& clock = Clock::System();
  TensorDict out;
  // The memory of all batches that go round is taken before.
  for (int64_t i = 0; i < 4 * (state.range(1) + 2); ++i) {
    if (!buffer->SampleInto(&out).ok()) return state.SkipWithError("Sample");
  }
  absl::Duration waited = absl::ZeroDuration();
  std::vector<double> calls;
  const absl::Time begin = clock.Now();
  for (auto _ : state) {
    const absl::Time until = clock.Now() + absl::Milliseconds(1);
    if (is_asleep) absl::SleepFor(absl::Milliseconds(1));
    while (clock.Now() < until) {
    }
    const absl::Time asked = clock.Now();
    if (!buffer->SampleInto(&out).ok()) state.SkipWithError("Sample");
    const absl::Duration call = clock.Now() - asked;
    waited += call;
    calls.push_back(absl::ToDoubleMicroseconds(call));
  }
  const absl::Duration all = clock.Now() - begin;
  state.SetLabel(kind.name);
  state.counters["waits"] = absl::FDivDuration(waited, all);
  state.counters["step_ms"] =
      absl::ToDoubleMilliseconds(all - waited) / calls.size();
  state.counters["call_us"] = MedianOf(std::move(calls));
  state.counters["gather_ms"] = gather_ms;
}

// --- Writes beside samples ---------------------------------------------------

// The time of a call, in us: mean of so many ms at least.
template <typename Call>
double CallUs(int ms, const Call& call) {
  const Clock& clock = Clock::System();
  const absl::Time begin = clock.Now();
  int64_t calls = 0;
  absl::Duration time;
  do {
    call();
    time = clock.Now() - begin;
    ++calls;
  } while (time < absl::Milliseconds(ms));
  return absl::ToDoubleMicroseconds(time) / static_cast<double>(calls);
}

// The same beside a thread that does `other` all the time.
template <typename Call, typename Other>
double CallUsBeside(const Other& other, int ms, const Call& call) {
  std::atomic<bool> has_begun = false;
  std::atomic<bool> is_done = false;
  std::thread thread([&] {
    while (!is_done) {
      other();
      has_begun = true;
    }
  });
  while (!has_begun) std::this_thread::yield();
  const double us = CallUs(ms, call);
  is_done = true;
  thread.join();
  return us;
}

// Numbers and nothing else.
void Reckon() {
  uint64_t values[4] = {1, 2, 3, 4};
  for (uint64_t i = 0; i < 10'000; ++i) {
    values[0] = values[0] * 3 + 1;
    values[1] = values[1] * 5 + i;
    values[2] ^= values[0];
    values[3] += values[1] ^ values[2];
    benchmark::DoNotOptimize(values);
  }
}

// The time of `call` beside `other`, divided by its time alone, in turns. A
// machine may lend two threads of one core for two cores, for a while. So turns
// do not count where a loop of numbers, before or behind, loses a tenth beside
// another.
class Turns {
 public:
  template <typename Call, typename Other>
  void Take(const Other& other, const Call& call) {
    const double alone = CallUs(5, call);
    const double before = CallUsBeside(Reckon, 2, Reckon);
    const double beside = CallUsBeside(other, 5, call);
    const double behind = CallUsBeside(Reckon, 2, Reckon);
    ++turns_;
    if (std::max(before, behind) > 1.1 * CallUs(2, Reckon)) return;
    alone_.push_back(alone);
    beside_.push_back(beside);
    ratios_.push_back(beside / alone);
  }

  double alone_us() const { return MedianOf(alone_); }
  double beside_us() const { return MedianOf(beside_); }
  double ratio() const { return MedianOf(ratios_); }
  double share_that_counts() const {
    return static_cast<double>(alone_.size()) / turns_;
  }

 private:
  std::vector<double> alone_, beside_, ratios_;
  double turns_ = 0;
};

// As many bytes as a write or a sample of rows moves, by memcpy.
class Copies {
 public:
  Copies(int64_t capacity, size_t width)
      : capacity_(capacity),
        rows_written_(std::min<int64_t>(capacity, 1000)),
        width_(width),
        ring_(static_cast<size_t>(capacity) * width),
        batch_(static_cast<size_t>(rows_written_) * width),
        sample_(kBatch * width),
        rows_(kBatch) {}

  void Write() {
    if (cursor_ + rows_written_ > capacity_) cursor_ = 0;
    std::memcpy(ring_.data() + static_cast<size_t>(cursor_) * width_,
                batch_.data(), batch_.size());
    cursor_ += rows_written_;
    benchmark::ClobberMemory();
  }
  void Sample() {
    ++sampled_;
    for (uint32_t k = 0; k < kBatch; ++k) {
      rows_[k] = static_cast<size_t>(rng_.UniformInt(sampled_, k, capacity_));
      __builtin_prefetch(ring_.data() + rows_[k] * width_);
    }
    for (size_t k = 0; k < rows_.size(); ++k) {
      std::memcpy(sample_.data() + k * width_, ring_.data() + rows_[k] * width_,
                  width_);
    }
    benchmark::ClobberMemory();
  }

 private:
  const int64_t capacity_;
  const int64_t rows_written_;
  const size_t width_;
  std::vector<std::byte> ring_, batch_, sample_;
  std::vector<size_t> rows_;
  const Rng rng_{1};
  uint64_t sampled_ = 0;
  int64_t cursor_ = 0;
};

// Extend of 1,000 rows alone and beside a thread that samples all the time.
// Beside it the limit of the machine's two cores: as many bytes copied by
// memcpy and nothing else.
void BM_ExtendBeside(benchmark::State& state) {
  const RowKind& kind = kKinds[state.range(0)];
  const std::shared_ptr<Storage> storage = Filled(kind);
  const auto buffer = BufferOver(storage);
  const auto batch = SpecOf(kind).Zero({1000});
  if (!batch.ok()) return state.SkipWithError("batch");
  // Rows in whole cache lines.
  const auto row_bytes = static_cast<size_t>(storage->MemoryUsage().row);
  Copies copies(kind.capacity, (row_bytes + 63) / 64 * 64);
  TensorDict out;
  Turns extends;
  Turns copied;
  for (auto _ : state) {
    extends.Take([&] { buffer->SampleInto(&out).IgnoreError(); },
                 [&] {
                   if (buffer->Extend(*batch).ok()) return;
                   state.SkipWithError("Extend");
                 });
    copied.Take([&] { copies.Sample(); }, [&] { copies.Write(); });
  }
  state.SetLabel(kind.name);
  state.counters["alone_us"] = extends.alone_us();
  state.counters["beside_us"] = extends.beside_us();
  state.counters["ratio"] = extends.ratio();
  state.counters["counts"] = extends.share_that_counts();
  state.counters["memcpy_alone_us"] = copied.alone_us();
  state.counters["memcpy_beside_us"] = copied.beside_us();
  state.counters["memcpy_ratio"] = copied.ratio();
}

BENCHMARK(BM_Sample)->DenseRange(0, 2)->UseManualTime();
BENCHMARK(BM_PrioritizedSampleAndUpdate)->Arg(1'000'000)->Arg(10'000'000);
BENCHMARK(BM_LearnerWaits)
    ->ArgNames({"rows", "prefetch", "threads", "asleep"})
    ->ArgsProduct({{2}, {0}, {1}, {0, 1}})
    ->ArgsProduct({{2}, {2, 4, 8}, {1, 2}, {0, 1}})
    ->ArgsProduct({{0, 1}, {2, 4, 8}, {1}, {0, 1}})
    ->UseRealTime();
BENCHMARK(BM_ExtendBeside)->DenseRange(0, 2)->UseRealTime();

void RegisterSmall() {
  benchmark::RegisterBenchmark("small/Sample", BM_Sample)
      ->Arg(3)
      ->UseManualTime();
  benchmark::RegisterBenchmark("small/PrioritizedSampleAndUpdate",
                               BM_PrioritizedSampleAndUpdate)
      ->Arg(512);
  benchmark::RegisterBenchmark("small/LearnerWaits", BM_LearnerWaits)
      ->Args({3, 2, 1, 0});
  benchmark::RegisterBenchmark("small/ExtendBeside", BM_ExtendBeside)->Arg(3);
}
[[maybe_unused]] const bool kRegistered = (RegisterSmall(), true);

}  // namespace
}  // namespace rill
