// SPDX-License-Identifier: Apache-2.0
// Times calls of benchmarks/python/replay_speed.py without Python; that script
// runs it. Prints microseconds of a sample of 256 from 100,000 rows, of 47 B
// and 3 KB.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/quick_main.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr absl::string_view kUsage =
    R"(Two lines, "<bytes of a row> <us a sample>".
  --quick  fewer rows and rounds
)";

struct Leaf {
  std::string key;
  DType dtype;
  Shape row;
};

std::vector<Leaf> SmallRow() {
  return {{"observation", DType::kFloat32, Shape({4})},
          {"action", DType::kInt64, Shape({})},
          {"reward", DType::kFloat32, Shape({1})},
          {"next_observation", DType::kFloat32, Shape({4})},
          {"done", DType::kBool, Shape({1})},
          {"terminated", DType::kBool, Shape({1})},
          {"truncated", DType::kBool, Shape({1})}};
}

std::vector<Leaf> WideRow() {
  return {{"pixels", DType::kUInt8, Shape({3072})}};
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> Filled(
    const std::vector<Leaf>& leaves, int64_t capacity) {
  RILL_ASSIGN_OR_RETURN(auto storage,
                        DenseStorage::Create({.capacity = capacity}));
  RILL_ASSIGN_OR_RETURN(auto buffer,
                        ReplayBuffer::Create({.storage = std::move(storage),
                                              .sampler = MakeUniformSampler(),
                                              .batch_size = 256,
                                              .seed = 1}));
  const int64_t steps = capacity / 10;
  TensorDict batch(Shape({steps}));
  for (const Leaf& leaf : leaves) {
    RILL_ASSIGN_OR_RETURN(
        Tensor values,
        Tensor::Zeros(leaf.dtype, Shape({steps}).Concat(leaf.row)));
    RILL_RETURN_IF_ERROR(batch.Set(leaf.key, std::move(values)));
  }
  for (int i = 0; i < 10; ++i) {
    RILL_RETURN_IF_ERROR(buffer->Extend(batch).status());
  }
  return buffer;
}

// The least of `rounds`, of a call's mean in each.
absl::StatusOr<double> SampleUs(const std::vector<Leaf>& leaves,
                                int64_t capacity, int rounds) {
  RILL_ASSIGN_OR_RETURN(auto buffer, Filled(leaves, capacity));
  TensorDict batch;
  const Clock& clock = Clock::Steady();
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    constexpr int kCalls = 700;
    const absl::Time start = clock.Now();
    for (int i = 0; i < kCalls; ++i) {
      RILL_RETURN_IF_ERROR(buffer->SampleInto(&batch));
    }
    best = std::min(best,
                    absl::ToDoubleMicroseconds(clock.Now() - start) / kCalls);
  }
  return best;
}

absl::Status Run(bool is_quick) {
  const int64_t capacity = is_quick ? 1000 : 100'000;
  const int rounds = is_quick ? 1 : 7;
  RILL_ASSIGN_OR_RETURN(const double small,
                        SampleUs(SmallRow(), capacity, rounds));
  RILL_ASSIGN_OR_RETURN(const double wide,
                        SampleUs(WideRow(), capacity, rounds));
  std::printf("47 %.2f\n3072 %.2f\n", small, wide);
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  return rill::QuickMain("replay_sample_main", rill::kUsage, argc, argv,
                         &rill::Run);
}
