// SPDX-License-Identifier: Apache-2.0
// The cost of a recorder: an event alone, the draws of a batch, and a worker's
// batch of 32 rows of 47 bytes.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "benchmark/benchmark.h"
#include "rill/flow/decision_log.h"
#include "rill/recorder/flight_recorder.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using Kind = Decision::Kind;

// A recorder whose file goes with it.
class Recorder {
 public:
  Recorder() : path_(absl::StrCat("/tmp/rill_recorder_benchmark_", getpid())) {
    auto recorder = FlightRecorder::Record({.path = path_});
    CHECK_OK(recorder);
    recorder_ = *std::move(recorder);
  }
  ~Recorder() { std::remove(path_.c_str()); }
  FlightRecorder* operator->() { return recorder_.get(); }

 private:
  const std::string path_;
  std::unique_ptr<FlightRecorder> recorder_;
};

void BM_Event(benchmark::State& state) {
  Recorder recorder;
  int64_t i = 0;
  for (auto _ : state) {
    CHECK_OK(recorder->Note(Kind::kPatch, 1, {++i}));
  }
}
BENCHMARK(BM_Event);

void BM_DrawsAndPriorities(benchmark::State& state) {
  const auto bytes = [](const auto& values) {
    return absl::string_view(reinterpret_cast<const char*>(values.data()),
                             values.size() * sizeof(values[0]));
  };
  const std::vector<uint32_t> draws = {7};  // The buffer's digest of them.
  std::vector<float> priorities(state.range(0));
  for (size_t i = 0; i < priorities.size(); ++i) {
    priorities[i] = 0.01f * static_cast<float>(1 + i * i % 89);
  }
  Recorder recorder;
  int64_t updates = 0;
  for (auto _ : state) {
    CHECK_OK(recorder->Note(Kind::kDraw, 1, {state.range(0)}, {bytes(draws)}));
    std::vector<int64_t> numbers = {state.range(0)};
    // As the buffer does it.
    if (updates++ % 8 == 0) {
      numbers = PriorityCounts::Of(priorities).ToNumbers();
    }
    CHECK_OK(recorder->Note(Kind::kPriorities, 1, numbers, {bytes(draws)}));
  }
}
BENCHMARK(BM_DrawsAndPriorities)->Arg(32)->Arg(128)->Arg(1024);

void BM_Batch(benchmark::State& state) {
  TensorDict batch({2, 16});
  for (const absl::string_view key : {"observation", "next/observation"}) {
    CHECK_OK(batch.Set(key, *Tensor::Zeros(DType::kFloat32, {2, 16, 4})));
  }
  for (const absl::string_view key : {"next/done", "next/terminated"}) {
    CHECK_OK(batch.Set(key, *Tensor::Zeros(DType::kBool, {2, 16, 1})));
  }
  CHECK_OK(batch.Set("next/reward", *Tensor::Zeros(DType::kFloat32, {2, 16})));
  CHECK_OK(batch.Set("policy_version", *Tensor::Zeros(DType::kInt64, {2, 16})));
  const std::vector<int64_t> numbers =
      Arrival{.steps = 16, .versions = {{16, 5}}}.ToNumbers();
  Recorder recorder;
  for (auto _ : state) {
    CHECK_OK(recorder->Note(Kind::kArrival, 1, numbers, batch, {}));
  }
}
BENCHMARK(BM_Batch);

}  // namespace
}  // namespace rill
