// SPDX-License-Identifier: Apache-2.0
// Cast of 16K elements, result included, and a memcpy of as many bytes as the
// cast writes for comparison.
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// In and out fit in the second-level cache: the cast is seen, not the memory.
constexpr int64_t kElements = 16 * 1024;

void BM_Cast(benchmark::State& state) {
  const auto from = static_cast<DType>(state.range(0));
  const auto to = static_cast<DType>(state.range(1));
  const Tensor in = *Tensor::Zeros(from, {kElements});
  for (auto _ : state) benchmark::DoNotOptimize(Cast(in, to));
  state.SetItemsProcessed(state.iterations() * kElements);
  state.SetLabel(absl::StrCat(DTypeName(from), " to ", DTypeName(to)));
}

void AddPairs(benchmark::internal::Benchmark* benchmark) {
  const std::pair<DType, DType> kPairs[] = {
      {DType::kUInt8, DType::kFloat32},    {DType::kBool, DType::kFloat32},
      {DType::kInt32, DType::kFloat32},    {DType::kInt64, DType::kFloat32},
      {DType::kFloat64, DType::kFloat32},  {DType::kFloat32, DType::kFloat64},
      {DType::kFloat16, DType::kFloat32},  {DType::kFloat32, DType::kFloat16},
      {DType::kBFloat16, DType::kFloat32}, {DType::kFloat32, DType::kBFloat16},
      {DType::kFloat32, DType::kInt64},    {DType::kFloat64, DType::kFloat16},
  };
  for (const auto& [from, to] : kPairs) {
    benchmark->Args({static_cast<int64_t>(from), static_cast<int64_t>(to)});
  }
}
BENCHMARK(BM_Cast)->Apply(AddPairs);

void BM_Memcpy(benchmark::State& state) {
  const std::vector<char> from(kElements * state.range(0));
  std::vector<char> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}
BENCHMARK(BM_Memcpy)->Arg(2)->Arg(4)->Arg(8);

}  // namespace
}  // namespace rill
