// SPDX-License-Identifier: Apache-2.0
// Samples of slices while rows are written, beside a loop that copies as many
// runs of rows.
//   bazel run --config=opt //benchmarks:slices_benchmark
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/median.h"
#include "rill/benchmarks/slice_rows.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kSlices = 256;
constexpr int64_t kLength = 16;
constexpr int64_t kBatch = kSlices * kLength;
constexpr int64_t kWritten = 1'000;  // Before each sample.
constexpr int64_t kEpisode = 1'000;

absl::Status Fill(ReplayBuffer* buffer, const TensorDict& rows,
                  int64_t stored) {
  while (buffer->size() < stored) {
    RILL_RETURN_IF_ERROR(buffer->Extend(rows).status());
  }
  return absl::OkStatus();
}

// A loop for one known record: 256 runs of 16 rows, each leaf, and the rows'
// numbers and starts of runs, into arrays of their own.
class ByHand {
 public:
  explicit ByHand(int64_t stored) : table_(static_cast<size_t>(stored)) {}

  void operator()(const std::array<int64_t, kSlices>& starts) {
    benchmark::DoNotOptimize(table_.data());
    constexpr size_t kAhead = 16;  // Runs, whose lines are under way.
    size_t to = 0;
    for (size_t k = 0; k < starts.size(); ++k) {
      if (k + kAhead < starts.size()) {
        const Row* const ahead =
            &table_[static_cast<size_t>(starts[k + kAhead])];
        for (int64_t i = 0; i < kLength; i += 4) __builtin_prefetch(ahead + i);
      }
      for (int64_t i = 0; i < kLength; ++i, ++to) {
        const Row& row = table_[static_cast<size_t>(starts[k] + i)];
        batch_.seen[2 * to] = row.seen[0];
        batch_.seen[2 * to + 1] = row.seen[1];
        batch_.rewards[to] = row.reward;
        batch_.dones[to] = row.done;
        batch_.index[to] = starts[k] + i;
        batch_.is_init[to] = i == 0;
      }
    }
    benchmark::DoNotOptimize(&batch_);
    benchmark::ClobberMemory();
  }

 private:
  struct Row {
    float seen[2];
    float reward;
    bool done;
  };
  struct Batch {
    float seen[2 * kBatch];
    float rewards[kBatch];
    int64_t index[kBatch];
    bool dones[kBatch];
    bool is_init[kBatch];
  };
  std::vector<Row> table_;
  Batch batch_ = {};
};

// Samples of `stored` rows, and the loop, in turns. Medians in us.
void BM_Slices(benchmark::State& state) {
  const int64_t stored = state.range(0);
  auto storage = DenseStorage::Create(
      {.capacity = stored + stored / 5, .spec = SliceRowSpec()});
  auto sampler = MakeSliceSampler({.length = kLength});
  auto rows = SliceRowSpec().Zero({kWritten});
  if (!storage.ok() || !sampler.ok() || !rows.ok()) {
    return state.SkipWithError("rows");
  }
  rows->Find("next/done")->data<bool>()[kEpisode - 1] = true;
  auto buffer = ReplayBuffer::Create({.storage = *std::move(storage),
                                      .sampler = *std::move(sampler),
                                      .batch_size = kBatch});
  if (!buffer.ok() || !Fill(buffer->get(), *rows, stored).ok()) {
    return state.SkipWithError("buffer");
  }
  ByHand by_hand(stored);
  const Clock& clock = Clock::System();
  const Rng rng(1);
  std::array<int64_t, kSlices> starts;
  std::vector<double> samples;
  std::vector<double> loops;
  TensorDict batch;
  uint64_t number = 0;
  for (auto _ : state) {
    for (uint32_t i = 0; i < kSlices; ++i) {
      starts[i] = rng.UniformInt(number, i, stored - kLength);
    }
    ++number;
    if (!(*buffer)->Extend(*rows).ok()) state.SkipWithError("Extend");
    const absl::Time begin = clock.Now();
    if (!(*buffer)->SampleInto(&batch).ok()) state.SkipWithError("Sample");
    const absl::Time middle = clock.Now();
    by_hand(starts);
    const absl::Duration loop = clock.Now() - middle;
    samples.push_back(absl::ToDoubleMicroseconds(middle - begin));
    loops.push_back(absl::ToDoubleMicroseconds(loop));
    state.SetIterationTime(absl::ToDoubleSeconds(middle - begin));
  }
  if (samples.empty()) return;
  state.counters["sample_us"] = MedianOf(std::move(samples));
  state.counters["by_hand_us"] = MedianOf(std::move(loops));
}
BENCHMARK(BM_Slices)->Arg(50'000)->Arg(5'000'000)->UseManualTime()->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace rill
