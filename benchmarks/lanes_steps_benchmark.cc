// SPDX-License-Identifier: Apache-2.0
// A collector that steps 16 to 65,536 lanes of CartPole with random actions, in
// batches of 65,536 rows. It does so alone, and with one of the transforms that
// most environments have beside them. Bare loops go over the same bytes.
// benchmarks/lanes runs it.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

enum Beside : int64_t { kNone, kCounter, kSum, kNorm, kExactNorm };
constexpr const char* kNames[] = {"none", "StepCounter", "RewardSum", "VecNorm",
                                  "VecNorm, decay 1"};

void AddTransform(int64_t beside, SyncCollector::Options& options) {
  switch (beside) {
    case kCounter:
      options.transforms.push_back(*StepCounter::Create({.max_steps = 200}));
      return;
    case kSum:
      options.transforms.push_back(*RewardSum::Create({}));
      return;
    case kNorm:
    case kExactNorm:
      options.transforms.push_back(*VecNorm::Create(
          {.shapes = {{4}}, .decay = beside == kNorm ? 0.9999 : 1}));
      return;
    default:
      return;
  }
}

void CountRows(int64_t rows, benchmark::State& state) {
  state.SetLabel(kNames[state.range(2)]);
  state.counters["row"] = benchmark::Counter(
      static_cast<double>(rows), benchmark::Counter::kIsIterationInvariantRate |
                                     benchmark::Counter::kInvert);
}

// The column "row" has the CPU time of a lane's step.
void BM_Collect(benchmark::State& state) {
  const int64_t lanes = state.range(0);
  const int64_t rows = std::max(lanes, state.range(1));
  SyncCollector::Options options;
  options.env = *MakeCartPole({.lanes = lanes});
  options.frames_per_batch = rows;
  AddTransform(state.range(2), options);
  auto collector = SyncCollector::Create(std::move(options));
  if (!collector.ok()) return state.SkipWithError("Create");
  for (auto _ : state) {
    if (!(*collector)->Next().ok()) return state.SkipWithError("Next");
  }
  CountRows(rows, state);
}

// Columns of one step of all lanes, and what they become.
struct Columns {
  explicit Columns(int64_t lanes)
      : reset(static_cast<size_t>(lanes)),
        reward(reset.size(), 1),
        observation(4 * reset.size(), 0.5F),
        counts(reset.size()),
        written_counts(reset.size()),
        truncated(reset.size()),
        sums(reset.size()),
        written_sums(reset.size()),
        normalised(observation.size()) {}

  void Count() {
    for (size_t lane = 0; lane < reset.size(); ++lane) {
      const int64_t count = reset[lane] != 0 ? 1 : counts[lane] + 1;
      counts[lane] = written_counts[lane] = count;
      truncated[lane] = count >= 200;
    }
  }
  void Sum() {
    for (size_t lane = 0; lane < reset.size(); ++lane) {
      const float before = reset[lane] != 0 ? 0 : sums[lane];
      sums[lane] = written_sums[lane] = before + reward[lane];
    }
  }
  // Plain sums of doubles, which are neither weighted nor exact.
  void Normalise() {
    rows += static_cast<double>(reset.size());
    for (size_t i = 0; i < observation.size(); ++i) {
      const double x = observation[i];
      total[i % 4] += x;
      squares[i % 4] += x * x;
    }
    float mean[4], scale[4];
    for (size_t i = 0; i < 4; ++i) {
      const double center = total[i] / rows;
      mean[i] = static_cast<float>(center);
      scale[i] = static_cast<float>(
          1 / std::sqrt(squares[i] / rows - center * center + 1e-4));
    }
    for (size_t i = 0; i < observation.size(); ++i) {
      normalised[i] = (observation[i] - mean[i % 4]) * scale[i % 4];
    }
  }

  std::vector<uint8_t> reset;
  std::vector<float> reward, observation;
  std::vector<int64_t> counts, written_counts;
  std::vector<uint8_t> truncated;
  std::vector<float> sums, written_sums, normalised;
  double rows = 0, total[4] = {}, squares[4] = {};
};

// Copies the rows of one step to each leaf of a batch [lanes, time].
void CopyStep(const TensorDict& batch, int64_t step,
              absl::Span<const std::byte> rows) {
  const int64_t lanes = batch.batch_shape()[0];
  batch.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    const auto strides = leaf.strides_bytes();
    const auto width = static_cast<size_t>(leaf.size_bytes() /
                                           batch.batch_shape().num_elements());
    std::byte* to = leaf.raw_data() + step * strides[1];
    const std::byte* from = rows.data();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      std::memcpy(to, from, width);
      to += strides[0];
      from += width;
    }
  });
}

// The same bytes as a collector copies, or as one of the transforms reads and
// writes, in loops without checks. Nothing steps an environment.
void BM_Bare(benchmark::State& state) {
  const int64_t lanes = state.range(0);
  const int64_t rows = std::max(lanes, state.range(1));
  auto collector = SyncCollector::Create(
      {.env = *MakeCartPole({.lanes = lanes}), .frames_per_batch = rows});
  if (!collector.ok()) return state.SkipWithError("Create");
  const auto batch = (*collector)->Next();
  if (!batch.ok()) return state.SkipWithError("Next");
  const std::vector<std::byte> copied(static_cast<size_t>(lanes) * 64);
  Columns columns(lanes);
  for (auto _ : state) {
    for (int64_t step = 0; step < rows / lanes; ++step) {
      switch (state.range(2)) {
        case kNone:
          CopyStep(*batch, step, copied);
          break;
        case kCounter:
          columns.Count();
          break;
        case kSum:
          columns.Sum();
          break;
        default:
          columns.Normalise();
      }
      benchmark::ClobberMemory();
    }
  }
  CountRows(rows, state);
}

void Sweep(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"lanes", "rows", "beside"});
  for (const int64_t beside : {kNone, kCounter, kSum, kNorm, kExactNorm}) {
    for (const int64_t lanes : {16, 1024, 4096, 16'384, 65'536}) {
      benchmark->Args({lanes, 65'536, beside});
    }
  }
}
BENCHMARK(BM_Collect)->Apply(Sweep);
BENCHMARK(BM_Bare)->Apply(Sweep);

void RegisterSmall() {
  for (const int64_t beside : {kNone, kCounter, kSum, kNorm, kExactNorm}) {
    for (auto* const benchmark :
         {benchmark::RegisterBenchmark("small/Collect", BM_Collect),
          benchmark::RegisterBenchmark("small/Bare", BM_Bare)}) {
      benchmark->Args({128, 256, beside});
    }
  }
}
[[maybe_unused]] const bool kRegistered = (RegisterSmall(), true);

}  // namespace
}  // namespace rill
