// SPDX-License-Identifier: Apache-2.0
// Storage::Save of so many MiB of rows: all of them, and after so many per
// mille of them were appended. Synced to the disk under the test's directory.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "benchmark/benchmark.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kRowBytes = 1 << 12;

TensorDict Rows(int64_t steps) {
  auto bytes = *Tensor::Zeros(DType::kUInt8, {steps, kRowBytes});
  return *TensorDict::Create({steps}, {{"observation", bytes}});
}

// Args: MiB in all, per mille appended before each save; -1: writes all.
void BM_Save(benchmark::State& state) {
  const int64_t capacity = (state.range(0) << 20) / kRowBytes;
  const int64_t steps = std::max<int64_t>(capacity * state.range(1) / 1000, 0);
  const char* const parent = std::getenv("TEST_TMPDIR");
  const std::string directory =
      JoinPath(parent == nullptr ? "/tmp" : parent, "save_benchmark");
  auto storage = *DenseStorage::Create({.capacity = capacity});
  const TensorDict batch = Rows(std::max<int64_t>(steps, 1));
  if (!storage->Extend(Rows(capacity)).ok() || !storage->Save(directory).ok()) {
    state.SkipWithError("cannot save");
    return;
  }
  ScopedFaultHook hook([&](absl::string_view point, absl::string_view) {
    return state.range(1) < 0 && point == "file.link"
               ? absl::UnavailableError("writes all")
               : absl::OkStatus();
  });
  for (auto _ : state) {
    if (steps > 0 && !storage->Extend(batch).ok()) {
      state.SkipWithError("cannot extend");
    }
    if (!storage->Save(directory).ok()) state.SkipWithError("cannot save");
  }
  state.SetBytesProcessed(state.iterations() * (state.range(0) << 20));
  RemoveAll(directory).IgnoreError();
}

BENCHMARK(BM_Save)
    ->Name("Save")
    ->ArgNames({"MiB", "permille"})
    ->ArgsProduct({{8, 1024}, {-1, 0, 10, 100}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace rill
