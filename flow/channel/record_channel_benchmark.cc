// SPDX-License-Identifier: Apache-2.0
// Batches of case a's steps (CartPole: 4 + 4 floats, 38 bytes) and of pixels
// through a channel, written and drained in turn. Beside each, one copy of the
// same bytes.
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/log/check.h"
#include "absl/status/status.h"
#include "benchmark/benchmark.h"
#include "rill/flow/channel/record_channel.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

TensorDictSpec Spec(bool is_small) {
  TensorDictSpec spec;
  const auto add = [&](const char* key, DType dtype, const Shape& shape) {
    CHECK(spec.Set(key, LeafSpec{.dtype = dtype, .shape = shape}).ok());
  };
  if (is_small) {
    add("observation", DType::kFloat32, {4});
    add("action", DType::kInt64, {});
    add("next/observation", DType::kFloat32, {4});
    add("next/reward", DType::kFloat32, {1});
    add("next/done", DType::kBool, {1});
    add("next/terminated", DType::kBool, {1});
  } else {
    add("pixels", DType::kUInt8, {84, 84, 4});
  }
  return spec;
}

void BM_WriteAndDrain(benchmark::State& state) {
  const TensorDictSpec spec = Spec(state.range(0) != 0);
  const auto channel = *RecordChannel::Create({.spec = spec});
  const auto producer = *channel->OpenProducer(0);
  const TensorDict batch = *spec.Zero({1, state.range(1)});
  FunctionSink sink([](const TensorDict& got, const WriteInfo&) {
    int64_t steps = got.batch_shape().num_elements();
    benchmark::DoNotOptimize(steps);
    return absl::OkStatus();
  });
  for (auto _ : state) {
    CHECK(producer->Write(batch, {}).ok());
    CHECK(channel->Drain(&sink).ok());
  }
  state.SetBytesProcessed(state.iterations() * batch.size_bytes());
}

void BM_CopyOfTheSameBytes(benchmark::State& state) {
  const TensorDict batch = *Spec(state.range(0) != 0).Zero({1, state.range(1)});
  std::vector<char> from(batch.size_bytes()), ring(16 << 20);
  size_t at = 0;
  for (auto _ : state) {
    if (at + from.size() > ring.size()) at = 0;
    std::memcpy(ring.data() + at, from.data(), from.size());
    benchmark::ClobberMemory();
    at += from.size();
  }
  state.SetBytesProcessed(state.iterations() * batch.size_bytes());
}

#define RILL_SIZES \
  ArgNames({"small", "steps"})->Args({1, 1})->Args({1, 1000})->Args({0, 100})
BENCHMARK(BM_WriteAndDrain)->RILL_SIZES;
BENCHMARK(BM_CopyOfTheSameBytes)->RILL_SIZES;

}  // namespace
}  // namespace rill
