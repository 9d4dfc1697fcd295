// SPDX-License-Identifier: Apache-2.0
// The cost of operations on a dictionary of six float32 leaves [64, 4], and of
// an addition of 16 MB beside a copy of as many bytes.
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/ops/apply.h"
#include "rill/tensordict/ops/arithmetic.h"
#include "rill/tensordict/ops/index.h"
#include "rill/tensordict/ops/keys.h"
#include "rill/tensordict/ops/reductions.h"
#include "rill/tensordict/ops/shape_ops.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

constexpr absl::string_view kKeys[] = {"observation", "action", "reward",
                                       "done",        "value",  "log_prob"};

TensorDict MakeSix() {
  TensorDict dict({64});
  for (const absl::string_view key : kKeys) {
    dict.Set(key, *Full(DType::kFloat32, {64, 4}, 1.5)).IgnoreError();
  }
  return dict;
}

void BM_Add(benchmark::State& state) {
  const TensorDict a = MakeSix();
  const TensorDict b = MakeSix();
  for (auto _ : state) benchmark::DoNotOptimize(Add(a, b));
}
BENCHMARK(BM_Add);

void BM_AddInPlace(benchmark::State& state) {
  const TensorDict a = MakeSix();
  const TensorDict b = MakeSix();
  for (auto _ : state) benchmark::DoNotOptimize(AddInPlace(a, b));
}
BENCHMARK(BM_AddInPlace);

void BM_MulScalar(benchmark::State& state) {
  const TensorDict a = MakeSix();
  for (auto _ : state) benchmark::DoNotOptimize(Mul(a, 0.5));
}
BENCHMARK(BM_MulScalar);

void BM_ApplyIdentity(benchmark::State& state) {
  const TensorDict a = MakeSix();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        Apply(a, [](absl::Span<const Tensor> x) -> absl::StatusOr<Tensor> {
          return x[0];
        }));
  }
}
BENCHMARK(BM_ApplyIdentity);

void BM_ApplyAddOne(benchmark::State& state) {
  const TensorDict a = MakeSix();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        Apply(a, [](absl::Span<const Tensor> x) { return Add(x[0], 1); }));
  }
}
BENCHMARK(BM_ApplyAddOne);

void BM_MaskIndex(benchmark::State& state) {
  const TensorDict a = MakeSix();
  Tensor mask = *Tensor::Zeros(DType::kBool, {64});
  for (int64_t i = 0; i < 64; i += 2) mask.data<bool>()[i] = true;
  for (auto _ : state) benchmark::DoNotOptimize(At(a, {mask}));
}
BENCHMARK(BM_MaskIndex);

void BM_IndexRows32(benchmark::State& state) {
  const TensorDict a = MakeSix();
  std::vector<int64_t> rows(32);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = (i * 37) % 64;
  for (auto _ : state) benchmark::DoNotOptimize(At(a, {rows}));
}
BENCHMARK(BM_IndexRows32);

void BM_IndexBasic(benchmark::State& state) {
  const TensorDict a = MakeSix();
  for (auto _ : state) benchmark::DoNotOptimize(At(a, {Range{2, 40}}));
}
BENCHMARK(BM_IndexBasic);

void BM_SetAtRow(benchmark::State& state) {
  const TensorDict a = MakeSix();
  const TensorDict row = *At(a, {7});
  for (auto _ : state) benchmark::DoNotOptimize(SetAt(a, {3}, row));
}
BENCHMARK(BM_SetAtRow);

void BM_Unbind64(benchmark::State& state) {
  const TensorDict a = MakeSix();
  for (auto _ : state) benchmark::DoNotOptimize(Unbind(a));
}
BENCHMARK(BM_Unbind64);

void BM_Permute(benchmark::State& state) {
  const TensorDict a = *View(MakeSix(), {8, 8});
  for (auto _ : state) benchmark::DoNotOptimize(Permute(a, {1, 0}));
}
BENCHMARK(BM_Permute);

void BM_FlattenKeys(benchmark::State& state) {
  TensorDict a({64});
  a.Set("next", MakeSix()).IgnoreError();
  for (auto _ : state) benchmark::DoNotOptimize(FlattenKeys(a));
}
BENCHMARK(BM_FlattenKeys);

void BM_SumOverBatch(benchmark::State& state) {
  const TensorDict a = MakeSix();
  for (auto _ : state) benchmark::DoNotOptimize(Sum(a));
}
BENCHMARK(BM_SumOverBatch);

constexpr int64_t kLarge = 4 << 20;  // float32: 16 MB.

void BM_AddInPlace16MB(benchmark::State& state) {
  const Tensor a = *Full(DType::kFloat32, {kLarge}, 1.5);
  const Tensor b = *Full(DType::kFloat32, {kLarge}, 1e-9);
  for (auto _ : state) benchmark::DoNotOptimize(AddInPlace(a, b));
  state.SetBytesProcessed(state.iterations() * kLarge * 12);
}
BENCHMARK(BM_AddInPlace16MB);

void BM_Add16MB(benchmark::State& state) {
  const Tensor a = *Full(DType::kFloat32, {kLarge}, 1.5);
  const Tensor b = *Full(DType::kFloat32, {kLarge}, 1e-9);
  for (auto _ : state) benchmark::DoNotOptimize(Add(a, b));
  state.SetBytesProcessed(state.iterations() * kLarge * 12);
}
BENCHMARK(BM_Add16MB);

// The best that memory gives: one stream read, one written.
void BM_Memcpy16MB(benchmark::State& state) {
  const Tensor a = *Full(DType::kFloat32, {kLarge}, 1.5);
  const Tensor b = *Full(DType::kFloat32, {kLarge}, 1e-9);
  for (auto _ : state) {
    std::memcpy(a.raw_data(), b.raw_data(), kLarge * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kLarge * 8);
}
BENCHMARK(BM_Memcpy16MB);

void BM_Sum16MB(benchmark::State& state) {
  const Tensor a = *Full(DType::kFloat32, {kLarge}, 1.5);
  for (auto _ : state) benchmark::DoNotOptimize(Sum(a));
  state.SetBytesProcessed(state.iterations() * kLarge * 4);
}
BENCHMARK(BM_Sum16MB);

}  // namespace
}  // namespace rill::ops
