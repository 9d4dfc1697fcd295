// SPDX-License-Identifier: Apache-2.0
// Gathers of random rows beside a hand-written loop for the very same columns.
// The distance between the two is the cost of generality.
//   bazel run --config=opt //device:row_copy_benchmark
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/row_copy.h"

namespace rill {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kBatches = 64;  // So that rows are not in the cache again.

// The transition of the measurement in docs: 64 bytes in 7 columns.
struct Transition {
  float observation[6];
  float next_observation[6];
  float reward;
  int64_t action __attribute__((packed));
  uint8_t flags[3];
  uint8_t unused;
};
static_assert(sizeof(Transition) == 64);

std::vector<int64_t> RandomRows(int64_t table_rows) {
  const Rng rng(/*seed=*/1);
  std::vector<int64_t> rows(kBatch * kBatches);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = rng.UniformInt(0, i, table_rows);
  }
  return rows;
}

// `widths` side by side in a record (packed), or an array each.
struct Setup {
  Setup(int64_t table_rows, std::vector<int64_t> widths, bool packed) {
    for (const int64_t width : widths) record += width;
    table = *Buffer::Allocate(table_rows * record);
    std::memset(table->data(), 1, table->size_bytes());
    batch = *Buffer::Allocate(kBatch * record);
    std::memset(batch->data(), 0, batch->size_bytes());
    int64_t offset = 0;
    for (const int64_t width : widths) {
      columns.push_back(
          {table->data() + (packed ? offset : offset * table_rows),
           packed ? record : width, batch->data() + offset * kBatch, width,
           width});
      offset += width;
    }
    rows = RandomRows(table_rows);
  }
  absl::Span<const int64_t> NextRows() {
    at = (at + 1) % kBatches;
    return absl::MakeConstSpan(rows).subspan(at * kBatch, kBatch);
  }
  void Report(benchmark::State& state) const {
    state.SetItemsProcessed(state.iterations() * kBatch);
    state.SetBytesProcessed(state.iterations() * kBatch * record);
  }

  int64_t record = 0;
  int64_t at = 0;
  std::shared_ptr<Buffer> table, batch;
  std::vector<RowColumn> columns;
  std::vector<int64_t> rows;
};

const std::vector<int64_t> kTransitionWidths = {24, 24, 4, 8, 1, 1, 1, 1};

void Gather(Setup setup, benchmark::State& state) {
  for (auto _ : state) {
    GatherRowsOnHost(setup.columns, setup.NextRows());
    benchmark::ClobberMemory();
  }
  setup.Report(state);
}

void BM_GatherTransition(benchmark::State& state) {
  Gather(Setup(state.range(0), kTransitionWidths, state.range(1) != 0), state);
}
BENCHMARK(BM_GatherTransition)
    ->ArgNames({"rows", "packed"})
    ->ArgsProduct({{1 << 14, 1 << 20}, {0, 1}});

// The loop that one would write for packed transitions and nothing else.
void BM_GatherTransitionByHand(benchmark::State& state) {
  Setup setup(state.range(0), kTransitionWidths, /*packed=*/true);
  const auto* table = reinterpret_cast<const Transition*>(setup.table->data());
  const auto column = [&](size_t i) { return setup.columns[i].batch; };
  std::byte* const observation = column(0);
  std::byte* const next_observation = column(1);
  std::byte* const reward = column(2);
  std::byte* const action = column(3);
  for (auto _ : state) {
    const absl::Span<const int64_t> rows = setup.NextRows();
    for (const int64_t row : rows) __builtin_prefetch(&table[row]);
    for (int64_t i = 0; i < kBatch; ++i) {
      std::memcpy(observation + i * 24, table[rows[i]].observation, 24);
    }
    for (int64_t i = 0; i < kBatch; ++i) {
      std::memcpy(next_observation + i * 24, table[rows[i]].next_observation,
                  24);
    }
    for (int64_t i = 0; i < kBatch; ++i) {
      std::memcpy(reward + i * 4, &table[rows[i]].reward, 4);
    }
    for (int64_t i = 0; i < kBatch; ++i) {
      std::memcpy(action + i * 8,
                  reinterpret_cast<const std::byte*>(&table[rows[i]]) + 52, 8);
    }
    for (int64_t flag = 0; flag < 4; ++flag) {
      std::byte* const flags = column(4 + flag);
      for (int64_t i = 0; i < kBatch; ++i) {
        flags[i] =
            reinterpret_cast<const std::byte*>(&table[rows[i]])[60 + flag];
      }
    }
    benchmark::ClobberMemory();
  }
  setup.Report(state);
}
BENCHMARK(BM_GatherTransitionByHand)
    ->ArgName("rows")
    ->Arg(1 << 14)
    ->Arg(1 << 20);

void BM_GatherWidth(benchmark::State& state) {
  const int64_t width = state.range(0);
  Gather(Setup((int64_t{1} << 28) / width, {width}, /*packed=*/true), state);
}
void BM_GatherWidthByMemcpy(benchmark::State& state) {
  const int64_t width = state.range(0);
  Setup setup((int64_t{1} << 28) / width, {width}, /*packed=*/true);
  const RowColumn& column = setup.columns[0];
  for (auto _ : state) {
    int64_t i = 0;
    for (const int64_t row : setup.NextRows()) {
      std::memcpy(BatchPlace(column, i++), TableRow(column, row), width);
    }
    benchmark::ClobberMemory();
  }
  setup.Report(state);
}
void Widths(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("width");
  for (const int64_t width : {4, 16, 64, 100, 1504, 28224}) {
    benchmark->Arg(width);
  }
}
BENCHMARK(BM_GatherWidth)->Apply(Widths);
BENCHMARK(BM_GatherWidthByMemcpy)->Apply(Widths);

// Two leaves of `width` bytes in a record, `turn` batches in turn, in windows
// of a MiB as a storage reads them. They go through the caches or past them.
// read = 1: each batch is then read once, by the same thread.
void BM_GatherLarge(benchmark::State& state) {
  const int64_t width = state.range(0);
  const int64_t batch_rows = state.range(1);
  const bool past_caches = state.range(3) != 0;
  const int64_t record = 2 * width;
  const int64_t table_rows = (int64_t{460} << 20) / record;
  const int64_t window = std::max<int64_t>((1 << 20) / record, 1);
  const auto table = *Buffer::Allocate(table_rows * record);
  std::memset(table->data(), 1, table->size_bytes());
  std::vector<std::shared_ptr<Buffer>> batches(state.range(2));
  for (auto& batch : batches) {
    batch = *Buffer::Allocate(batch_rows * record);
    std::memset(batch->data(), 1, batch->size_bytes());
  }
  const Rng rng(/*seed=*/1);
  std::vector<int64_t> rows(batch_rows);
  uint64_t turn = 0;
  for (auto _ : state) {
    state.PauseTiming();
    ++turn;
    for (int64_t i = 0; i < batch_rows; ++i) {
      rows[i] = rng.UniformInt(turn, i, table_rows);
    }
    const Buffer& batch = *batches[turn % batches.size()];
    state.ResumeTiming();
    for (int64_t begin = 0; begin < batch_rows; begin += window) {
      std::byte* const to = batch.data() + begin * width;
      GatherRowsOnHost({{table->data(), record, to, width, width, past_caches},
                        {table->data() + width, record, to + batch_rows * width,
                         width, width, past_caches}},
                       absl::MakeConstSpan(rows).subspan(begin, window));
    }
    if (state.range(4) != 0) {
      const auto* words = reinterpret_cast<const int64_t*>(batch.data());
      int64_t sum = 0;
      for (int64_t i = 0; i < batch_rows * record / 8; ++i) sum += words[i];
      benchmark::DoNotOptimize(sum);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * batch_rows * record);
}
BENCHMARK(BM_GatherLarge)
    ->ArgNames({"width", "rows", "turn", "past", "read"})
    ->ArgsProduct({{1504, 14112, 28224}, {256}, {1, 4}, {0, 1}, {0, 1}});

void BM_ScatterTransition(benchmark::State& state) {
  Setup setup(1 << 20, kTransitionWidths, state.range(0) != 0);
  for (auto _ : state) {
    ScatterRowsOnHost(setup.columns, setup.NextRows());
    benchmark::ClobberMemory();
  }
  setup.Report(state);
}
BENCHMARK(BM_ScatterTransition)->ArgName("packed")->Arg(0)->Arg(1);

}  // namespace
}  // namespace rill
