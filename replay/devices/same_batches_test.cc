// SPDX-License-Identifier: Apache-2.0
// What DQN, R2D2, PPO and their like sample is the same bytes wherever the rows
// lie: only `.device` of the storage or of the buffer differs.
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 3;
constexpr int64_t kLaneCapacity = 40;
constexpr int64_t kTime = 25;

// An algorithm's options but for devices.
struct Algorithm {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Sampler>>()> sampler;
  int64_t batch_size = 16;
  bool has_priorities = false;
  bool clears = false;  // Between rounds: on-policy.
};

const NStepReturns::Options kThreeSteps = {.num_steps = 3, .gamma = 0.97};
// Frames one behind the other, and frames that are torn into pieces.
const StackFrames::Options kFourFrames = {
    .num_frames = 4, .keys = {"pixels", "next/pixels"}, .dim = -3};
const StackFrames::Options kTornFrames = {
    .num_frames = 4, .keys = {"pixels", "next/pixels"}, .dim = -1};

// -1 but where the goals are equal; on the host, wherever they lie.
absl::StatusOr<Tensor> MinusOneUnlessEqual(const Tensor& achieved,
                                           const Tensor& desired) {
  RILL_ASSIGN_OR_RETURN(const Tensor a, achieved.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const Tensor b, desired.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const Tensor made,
                        Tensor::Empty(DType::kFloat32, a.shape()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    made.data<float>()[i] =
        a.data<int64_t>()[i] == b.data<int64_t>()[i] ? 0.0f : -1.0f;
  }
  return made.To(achieved.device());
}
absl::StatusOr<Tensor> AreEqual(const Tensor& achieved, const Tensor& desired) {
  RILL_ASSIGN_OR_RETURN(const Tensor a, achieved.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const Tensor b, desired.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const Tensor made,
                        Tensor::Empty(DType::kBool, a.shape()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    made.data<bool>()[i] = a.data<int64_t>()[i] == b.data<int64_t>()[i];
  }
  return made.To(achieved.device());
}

std::vector<Algorithm> Algorithms() {
  const auto prioritized = [](absl::StatusOr<SampleUnit> unit) {
    return MakePrioritizedSamplerOver(*std::move(unit));
  };
  const auto uniform = [](absl::StatusOr<SampleUnit> unit) {
    return MakeUniformSamplerOver(*std::move(unit));
  };
  const auto rainbow = [=](const StackFrames::Options& frames) {
    return prioritized(
        MakeTransitions({.n_step = kThreeSteps, .frames = frames}));
  };
  return {
      {.name = "DQN of torn frames",
       .sampler = [=] { return rainbow(kTornFrames); },
       .has_priorities = true},
      {.name = "DQN",
       .sampler = [=] { return rainbow(kFourFrames); },
       .has_priorities = true},
      {.name = "R2D2",
       .sampler =
           [=] {
             return prioritized(MakeSequences({.sequences = {.length = 5,
                                                             .burn_in = 3,
                                                             .bootstrap = 1,
                                                             .period = 2},
                                               .n_step = kThreeSteps,
                                               .frames = kTornFrames}));
           },
       .batch_size = 54,
       .has_priorities = true},
      {.name = "Sequences of whole frames",
       .sampler =
           [=] {
             return uniform(
                 MakeSequences({.sequences = {.length = 4, .burn_in = 1},
                                .frames = kFourFrames}));
           },
       .batch_size = 20},
      {.name = "PPO",
       .sampler = [] { return MakeSamplerWithoutReplacement(); },
       .clears = true},
      {.name = "Slices",
       .sampler =
           [=] {
             return uniform(
                 MakeSlices({.slices = {.length = 4, .is_strict = false}}));
           }},
      {.name = "Trajectories",
       .sampler = [=] { return uniform(MakeTrajectories({})); },
       .batch_size = 3},
      {.name = "Hindsight",
       .sampler =
           [=] {
             return uniform(
                 MakeHindsight({.relabel = {.reward = MinusOneUnlessEqual,
                                            .terminated = AreEqual}}));
           }},
  };
}

TensorDict StepsOf(uint64_t round) {
  TensorDictSpec spec;
  const auto set = [&spec](absl::string_view key, const LeafSpec& leaf) {
    RILL_EXPECT_OK(spec.Set(key, leaf));
  };
  set("pixels", LeafSpec::Unbounded(DType::kUInt8, {1, 4, 6}));
  set("action", LeafSpec::Categorical(4));
  set("desired_goal", LeafSpec::Bounded(DType::kInt64, {1}, 0, 5));
  set("is_init", LeafSpec::Binary({1}));
  set("next/pixels", LeafSpec::Unbounded(DType::kUInt8, {1, 4, 6}));
  set("next/achieved_goal", LeafSpec::Bounded(DType::kInt64, {1}, 0, 5));
  set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1}));
  for (const char* key : {"next/terminated", "next/truncated", "next/done"}) {
    set(key, LeafSpec::Binary({1}));
  }
  const Rng rng(17, RngStream::kUser);
  TensorDict steps = *spec.Random({kLanes, kTime}, rng, round);
  // Episodes of about eight steps.
  const auto flags = [&steps](absl::string_view key) {
    return steps.Find(key)->data<bool>();
  };
  for (int64_t i = 0; i < kLanes * kTime; ++i) {
    const int64_t end = rng.UniformInt(round, static_cast<uint32_t>(i), 16);
    flags("next/terminated")[i] = end == 0;
    flags("next/truncated")[i] = end == 1;
    flags("next/done")[i] = end <= 1;
  }
  return steps;
}

struct Places {
  Device storage = Device::Cpu();
  std::optional<Device> buffer = std::nullopt;
  int64_t prefetch = 0;
};

std::unique_ptr<ReplayBuffer> MakeBuffer(const Algorithm& algorithm,
                                         const Places& places) {
  auto storage = DenseStorage::Create({.capacity = kLanes * kLaneCapacity,
                                       .lanes = kLanes,
                                       .device = places.storage});
  RILL_EXPECT_OK(storage);
  auto sampler = algorithm.sampler();
  RILL_EXPECT_OK(sampler);
  return *ReplayBuffer::Create({.storage = *std::move(storage),
                                .sampler = *std::move(sampler),
                                .batch_size = algorithm.batch_size,
                                .device = places.buffer,
                                .seed = 5,
                                .prefetch = places.prefetch});
}

// All batches of a run, in host memory.
std::vector<TensorDict> RunOf(const Algorithm& algorithm,
                              const Places& places) {
  const auto buffer = MakeBuffer(algorithm, places);
  const Device device = places.buffer.value_or(places.storage);
  std::vector<TensorDict> batches;
  TensorDict batch;
  for (uint64_t round = 0; round < 4; ++round) {
    if (algorithm.clears) {
      RILL_EXPECT_OK(buffer->Clear());
    }
    RILL_EXPECT_OK(buffer->Extend(StepsOf(round)));
    for (int i = 0; i < 3; ++i) {
      const absl::Status status = buffer->SampleInto(&batch);
      RILL_EXPECT_OK(status) << algorithm.name;
      if (!status.ok()) return batches;
      batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
        EXPECT_EQ(leaf.device(), device) << key;
      });
      batches.push_back(*batch.To(Device::Cpu()));
      if (device.is_cpu()) batches.back() = *batches.back().Clone();
      if (!algorithm.has_priorities) continue;
      RILL_EXPECT_OK(buffer->UpdatePriorities(
          batch, std::vector<float>(static_cast<size_t>(batch.batch_shape()[0]),
                                    static_cast<float>(1 + i + 2 * round))));
    }
  }
  return batches;
}

void ExpectSameBatches(const std::vector<TensorDict>& got,
                       const std::vector<TensorDict>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(got[i].num_leaves(), want[i].num_leaves());
    EXPECT_EQ(got[i].dim_names(), want[i].dim_names());
    want[i].ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      const Tensor* const other = got[i].Find(key);
      ASSERT_NE(other, nullptr) << key;
      ASSERT_EQ(other->dtype(), leaf.dtype()) << key;
      ASSERT_EQ(other->shape(), leaf.shape()) << key;
      const Tensor a = *other->Contiguous();
      const Tensor b = *leaf.Contiguous();
      EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(),
                            static_cast<size_t>(b.size_bytes())),
                0)
          << key;
    });
  }
}

TEST(SameBatchesTest, WhereverTheRowsLie) {
  for (const Algorithm& algorithm : Algorithms()) {
    const std::vector<TensorDict> want = RunOf(algorithm, {});
    ASSERT_FALSE(want.empty());
    const Device device = DeviceUnderTest();
    {
      SCOPED_TRACE(algorithm.name + ": the storage on a device");
      ExpectSameBatches(RunOf(algorithm, {.storage = device}), want);
    }
    {
      SCOPED_TRACE(algorithm.name + ": both on a device");
      ExpectSameBatches(RunOf(algorithm, {.storage = device, .buffer = device}),
                        want);
    }
    {
      SCOPED_TRACE(algorithm.name + ": the buffer on a device");
      ExpectSameBatches(RunOf(algorithm, {.buffer = device}), want);
    }
    {
      SCOPED_TRACE(algorithm.name + ": the samples on the host");
      ExpectSameBatches(
          RunOf(algorithm, {.storage = device, .buffer = Device::Cpu()}), want);
    }
  }
}

TEST(SameBatchesTest, WithBatchesThatAreMadeAhead) {
  for (const Algorithm& algorithm : Algorithms()) {
    SCOPED_TRACE(algorithm.name);
    const std::vector<TensorDict> want = RunOf(algorithm, {.prefetch = 2});
    ExpectSameBatches(
        RunOf(algorithm, {.storage = DeviceUnderTest(), .prefetch = 2}), want);
  }
}

}  // namespace
}  // namespace rill
