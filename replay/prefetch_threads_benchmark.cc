// SPDX-License-Identifier: Apache-2.0
// Batches a second through a transform without a state that takes a core 100 us
// a batch, by prefetch threads. The learner does nothing but wait.
//   bazel run --config=opt //replay:prefetch_threads_benchmark
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "rill/base/clock.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/function_transform.h"

namespace rill {
namespace {

void BM_PureTransform(benchmark::State& state) {
  TensorDictSpec spec;
  spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4}))
      .IgnoreError();
  ReplayBuffer::Options options;
  options.storage = *DenseStorage::Create({.capacity = 1 << 12});
  options.sampler = MakeUniformSampler();
  options.batch_size = 32;
  options.prefetch = 8;
  options.prefetch_threads = static_cast<int>(state.range(0));
  options.transforms.push_back(
      *FunctionTransform::Create({.forward = [](TensorDict*) {
        const Clock& clock = Clock::System();
        const absl::Time until = clock.Now() + absl::Microseconds(100);
        while (clock.Now() < until) {
        }
        return absl::OkStatus();
      }}));
  auto buffer = ReplayBuffer::Create(std::move(options));
  if (!buffer.ok() || !(*buffer)->Extend(*spec.Zero({1 << 12})).ok()) {
    return state.SkipWithError("buffer");
  }
  TensorDict out;
  for (auto _ : state) {
    if (!(*buffer)->SampleInto(&out).ok()) state.SkipWithError("Sample");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_PureTransform)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace rill
