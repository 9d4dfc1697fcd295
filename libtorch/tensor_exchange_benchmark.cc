// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// The rows of a DQN batch on images.
absl::StatusOr<TensorDict> MakeBatch() {
  constexpr int64_t kRows = 32;
  TensorDict batch({kRows});
  for (const char* key : {"observation", "next/observation"}) {
    RILL_ASSIGN_OR_RETURN(Tensor frames,
                          Tensor::Zeros(DType::kUInt8, {kRows, 4, 84, 84}));
    RILL_RETURN_IF_ERROR(batch.Set(key, std::move(frames)));
  }
  for (const char* key :
       {"action", "next/reward", "next/terminated", "index"}) {
    RILL_ASSIGN_OR_RETURN(Tensor column,
                          Tensor::Zeros(DType::kFloat32, {kRows, 1}));
    RILL_RETURN_IF_ERROR(batch.Set(key, std::move(column)));
  }
  return batch;
}

// Skips the benchmark with the status where it is not OK.
bool Fails(const absl::Status& status, benchmark::State& state) {
  if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  return !status.ok();
}

// Six leaves to torch, and released.
void BM_BatchToTorch(benchmark::State& state) {
  const auto batch = MakeBatch();
  if (Fails(batch.status(), state)) return;
  for (auto _ : state) {
    auto tensors = ToTorch(*batch);
    if (Fails(tensors.status(), state)) return;
    benchmark::DoNotOptimize(tensors);
  }
}
BENCHMARK(BM_BatchToTorch);

// And back.
void BM_BatchFromTorch(benchmark::State& state) {
  const auto batch = MakeBatch();
  if (Fails(batch.status(), state)) return;
  const auto tensors = ToTorch(*batch);
  if (Fails(tensors.status(), state)) return;
  for (auto _ : state) {
    auto back = FromTorch(*tensors, batch->batch_shape());
    if (Fails(back.status(), state)) return;
    benchmark::DoNotOptimize(back);
  }
}
BENCHMARK(BM_BatchFromTorch);

void BM_TensorToTorch(benchmark::State& state) {
  const auto tensor = Tensor::Zeros(DType::kFloat32, {32, 4});
  if (Fails(tensor.status(), state)) return;
  for (auto _ : state) {
    auto shared = ToTorch(*tensor);
    if (Fails(shared.status(), state)) return;
    benchmark::DoNotOptimize(shared);
  }
}
BENCHMARK(BM_TensorToTorch);

}  // namespace
}  // namespace rill
