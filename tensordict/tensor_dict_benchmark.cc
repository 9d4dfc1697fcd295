// SPDX-License-Identifier: Apache-2.0
// The cost of an operation on a dictionary of six leaves. Reported apart from
// first touches of fresh memory: results are reused where an Into form exists.
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "benchmark/benchmark.h"
#include "rill/specs/field.h"
#include "rill/specs/schema.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr absl::string_view kKeys[] = {"observation", "action", "reward",
                                       "done",        "value",  "log_prob"};
constexpr int64_t kRows = 64;
constexpr int64_t kWidth = 4;

using Six =
    Schema<Field<"observation", float, kWidth>, Field<"action", float, kWidth>,
           Field<"reward", float, kWidth>, Field<"done", float, kWidth>,
           Field<"value", float, kWidth>, Field<"log_prob", float, kWidth>>;

// Six keys of [rows, 4].
TensorDict MakeSix(int64_t rows) {
  TensorDict dict({rows});
  for (const absl::string_view key : kKeys) {
    dict.Set(key, *Tensor::Zeros(DType::kFloat32, {rows, kWidth}))
        .IgnoreError();
  }
  return dict;
}

void BM_Get(benchmark::State& state) {
  const TensorDict dict = MakeSix(kRows);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dict.Get("log_prob"));  // The last one.
  }
}
BENCHMARK(BM_Get);

void BM_Find(benchmark::State& state) {
  const TensorDict dict = MakeSix(kRows);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dict.Find("log_prob"));
  }
}
BENCHMARK(BM_Find);

void BM_FindNested(benchmark::State& state) {
  TensorDict dict({kRows});
  dict.Set("next", MakeSix(kRows)).IgnoreError();
  for (auto _ : state) {
    benchmark::DoNotOptimize(dict.Find("next/log_prob"));
  }
}
BENCHMARK(BM_FindNested);

void BM_TypedGet(benchmark::State& state) {
  const auto typed = *Typed<Six>::Bind(MakeSix(kRows));
  for (auto _ : state) {
    benchmark::DoNotOptimize(typed.Get<"log_prob">().data());
  }
}
BENCHMARK(BM_TypedGet);

// With tensors that are there.
void BM_Create(benchmark::State& state) {
  const Tensor leaf = *Tensor::Zeros(DType::kFloat32, {kRows, kWidth});
  for (auto _ : state) {
    benchmark::DoNotOptimize(TensorDict::Create({kRows}, {{kKeys[0], leaf},
                                                          {kKeys[1], leaf},
                                                          {kKeys[2], leaf},
                                                          {kKeys[3], leaf},
                                                          {kKeys[4], leaf},
                                                          {kKeys[5], leaf}}));
  }
}
BENCHMARK(BM_Create);

// With tensors that are made for it, set one by one.
void BM_CreateWithTensors(benchmark::State& state) {
  for (auto _ : state) {
    TensorDict dict({kRows});
    for (const absl::string_view key : kKeys) {
      dict.Set(key, *Tensor::Empty(DType::kFloat32, {kRows, kWidth}))
          .IgnoreError();
    }
    benchmark::DoNotOptimize(dict);
  }
}
BENCHMARK(BM_CreateWithTensors);

void BM_CreateTyped(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Typed<Six>::Create({kRows}));
  }
}
BENCHMARK(BM_CreateTyped);

void BM_Index(benchmark::State& state) {
  const TensorDict dict = MakeSix(kRows);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dict.Index(17));
  }
}
BENCHMARK(BM_Index);

void BM_Slice(benchmark::State& state) {
  const TensorDict dict = MakeSix(kRows);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dict.Slice(0, 8, 40));
  }
}
BENCHMARK(BM_Slice);

void BM_GatherInto32(benchmark::State& state) {
  const TensorDict dict = MakeSix(state.range(0));
  std::vector<int64_t> rows(32);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<int64_t>(i) * 7919 % state.range(0);
  }
  TensorDict out = *dict.Gather(rows);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dict.GatherInto(rows, &out));
  }
}
BENCHMARK(BM_GatherInto32)->Arg(kRows)->Arg(1 << 12)->Arg(1 << 18);

void BM_Clone(benchmark::State& state) {
  const TensorDict dict = MakeSix(kRows);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dict.Clone());
  }
}
BENCHMARK(BM_Clone);

void BM_Copy(benchmark::State& state) {
  const TensorDict dict = MakeSix(kRows);
  for (auto _ : state) {
    TensorDict copy = dict;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(BM_Copy);

void BM_CopyFrom(benchmark::State& state) {
  TensorDict dict = MakeSix(kRows);
  const TensorDict from = MakeSix(kRows);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dict.CopyFrom(from));
  }
}
BENCHMARK(BM_CopyFrom);

void BM_StackInto64(benchmark::State& state) {
  const std::vector<TensorDict> dicts(64, MakeSix(kRows));
  TensorDict out = *Stack(dicts);
  for (auto _ : state) {
    benchmark::DoNotOptimize(StackInto(dicts, 0, &out));
  }
}
BENCHMARK(BM_StackInto64);

void BM_Stack64(benchmark::State& state) {
  const std::vector<TensorDict> dicts(64, MakeSix(kRows));
  for (auto _ : state) {
    benchmark::DoNotOptimize(Stack(dicts));
  }
}
BENCHMARK(BM_Stack64);

}  // namespace
}  // namespace rill
