// SPDX-License-Identifier: Apache-2.0
// Failures of TorchRL that drove its users away, where all of it meets: rows of
// two agents in a group, files, and a device. The numbers are those of the list
// in docs/cuda.md, which names the tests that go into each of them alone.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/device_batches.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/function_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kAgents = 2;
constexpr int64_t kEpisode = 8;  // Steps.

// [1, time]. Every value of a step is its number, so that a row tells which
// step it is.
TensorDict AgentSteps(int64_t time, int64_t first = 0) {
  std::vector<float> observations;
  std::vector<int64_t> actions;
  std::vector<float> rewards;
  const Tensor done = *Tensor::Zeros(DType::kBool, {1, time, 1});
  for (int64_t t = 0; t < time; ++t) {
    const int64_t number = first + t;
    observations.insert(observations.end(), 3 * kAgents,
                        static_cast<float>(number));
    actions.insert(actions.end(), kAgents, number);
    rewards.insert(rewards.end(), kAgents, static_cast<float>(number));
    done.data<bool>()[t] = number % kEpisode == kEpisode - 1;
  }
  return *TensorDict::Create(
      {1, time},
      {{"agents/observation",
        *Tensor::From<float>(observations, {1, time, kAgents, 3})},
       {"agents/action", *Tensor::From<int64_t>(actions, {1, time, kAgents})},
       {"next/agents/reward",
        *Tensor::From<float>(rewards, {1, time, kAgents, 1})},
       {"next/done", done}});
}

// A batch wherever it lies: its rows are whole rows of AgentSteps. Gives their
// numbers.
absl::StatusOr<std::vector<int64_t>> NumbersOf(const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const TensorDict host, batch.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const auto observations,
                        host.Flat<float>("agents/observation"));
  RILL_ASSIGN_OR_RETURN(const auto actions,
                        host.Flat<int64_t>("agents/action"));
  RILL_ASSIGN_OR_RETURN(const auto rewards,
                        host.Flat<float>("next/agents/reward"));
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < actions.size(); i += kAgents) {
    numbers.push_back(actions[i]);
    const auto number = static_cast<float>(actions[i]);
    for (size_t agent = i; agent < i + kAgents; ++agent) {
      EXPECT_EQ(actions[agent], actions[i]);
      EXPECT_EQ(rewards[agent], number);
      for (size_t j = 0; j < 3; ++j) {
        EXPECT_EQ(observations[3 * agent + j], number);
      }
    }
  }
  return numbers;
}

std::unique_ptr<Storage> MakeFiles(absl::string_view name, int64_t capacity) {
  return *MemmapStorage::Create(
      {.directory = FreshPath(name), .capacity = capacity});
}

// All rows in files, the newest quarter on the device too.
std::unique_ptr<TieredStorage> MakeTiers(absl::string_view name,
                                         int64_t capacity) {
  return *TieredStorage::Create({.below = MakeFiles(name, capacity),
                                 .fast_capacity = capacity / 4,
                                 .device = DeviceUnderTest()});
}

TEST(TorchRlFailuresTest, F1_GroupsThatATransformBuildsAnewArePinned) {
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(),
                            FunctionTransform::Create({.forward = BuildAnew}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer,
      ReplayBuffer::Create({.storage = MakeFiles("pinned", 64),
                            .sampler = MakeUniformSampler(),
                            .transforms = std::move(transforms),
                            .batch_size = 16,
                            .pin_memory = true,
                            .pin_for = DeviceUnderTest()}));
  RILL_ASSERT_OK(buffer->Extend(AgentSteps(64)).status());
  TensorDict batch;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    batch.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
      EXPECT_TRUE(leaf.is_pinned()) << key;
    });
    RILL_EXPECT_OK(NumbersOf(batch));
  }
}

// The error of files that are asked for a device names three ways; each of them
// gives the same batches there.
TEST(TorchRlFailuresTest, F2_TheThreeWaysOfFilesToADeviceGiveTheSameBatches) {
  constexpr int64_t kCapacity = 256;
  EXPECT_THAT(MemmapStorage::Create({.directory = FreshPath("refused"),
                                     .capacity = kCapacity,
                                     .device = DeviceUnderTest()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(DeviceUnderTest().ToString()),
                             HasSubstr("DenseStorage"), HasSubstr("ToDevice"),
                             HasSubstr("TieredStorage"))));

  std::vector<std::unique_ptr<ReplayBuffer>> buffers;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto rows_there, DenseStorage::Create({.capacity = kCapacity,
                                             .device = DeviceUnderTest()}));
  RILL_ASSERT_OK_AND_ASSIGN(
      buffers.emplace_back(),
      ReplayBuffer::Create({.storage = std::move(rows_there),
                            .sampler = MakeUniformSampler(),
                            .batch_size = 64}));
  RILL_ASSERT_OK_AND_ASSIGN(
      buffers.emplace_back(),
      ReplayBuffer::Create({.storage = MakeFiles("moved", kCapacity),
                            .sampler = MakeUniformSampler(),
                            .batch_size = 64,
                            .device = DeviceUnderTest()}));
  const std::shared_ptr<TieredStorage> tiers = MakeTiers("tiers", kCapacity);
  RILL_ASSERT_OK_AND_ASSIGN(
      buffers.emplace_back(),
      ReplayBuffer::Create({.storage = tiers,
                            .sampler = MakeUniformSampler(),
                            .batch_size = 64}));

  for (int64_t first = 0; first < 2 * kCapacity; first += kCapacity / 2) {
    std::vector<int64_t> want;
    for (const auto& buffer : buffers) {
      RILL_ASSERT_OK(buffer->Extend(AgentSteps(kCapacity / 2, first)).status());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
      ExpectAllOn(DeviceUnderTest(), batch);
      RILL_ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> got,
                                NumbersOf(batch));
      if (want.empty()) want = got;
      EXPECT_EQ(got, want);
    }
  }
  EXPECT_GT(tiers->GetStats().fast_rows, 0);
  EXPECT_GT(tiers->GetStats().slow_rows, 0);
}

// One sampler over both tiers: a slice may begin in the files and end on the
// device.
TEST(TorchRlFailuresTest, F3_SlicesOfBothTiersAreWholeWhileRowsStream) {
  constexpr int64_t kCapacity = 1024;
  constexpr int64_t kLength = 4;
  RILL_ASSERT_OK_AND_ASSIGN(auto sampler,
                            MakeSliceSampler({.length = kLength}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer,
      ReplayBuffer::Create({.storage = MakeTiers("slices", kCapacity),
                            .sampler = std::move(sampler),
                            .batch_size = 16 * kLength}));
  RILL_ASSERT_OK(buffer->Extend(AgentSteps(kCapacity)).status());
  std::atomic<int64_t> written = kCapacity;
  const std::jthread writer([&](const std::stop_token& stop) {
    constexpr int64_t kRows = 32;
    // float32 has all numbers below.
    while (!stop.stop_requested() && written < (1 << 22)) {
      RILL_ASSERT_OK(buffer->Extend(AgentSteps(kRows, written)).status());
      written += kRows;
    }
  });
  TensorDict batch;
  for (int i = 0; i < 100; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    ExpectAllOn(DeviceUnderTest(), batch);
    RILL_ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> numbers,
                              NumbersOf(batch));
    ASSERT_EQ(numbers.size(), 16 * kLength);
    for (size_t row = 0; row < numbers.size(); ++row) {
      if (row % kLength == 0) {
        EXPECT_LE(numbers[row] % kEpisode, kEpisode - kLength);
      } else {
        EXPECT_EQ(numbers[row], numbers[row - 1] + 1);
      }
    }
  }
}

TEST(TorchRlFailuresTest, F5_AFullDiskLosesNoRowOfEitherTier) {
  constexpr int64_t kCapacity = 1 << 16;
  const std::shared_ptr<TieredStorage> tiers = MakeTiers("full", kCapacity);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer, ReplayBuffer::Create({.storage = tiers,
                                               .sampler = MakeUniformSampler(),
                                               .batch_size = 64}));
  constexpr int64_t kRows = 1 << 12;
  // Numbers of the steps that were taken, by their slots: the ring is not full.
  // A step that was refused is not tried again.
  std::vector<int64_t> taken;
  int64_t next = 0;
  const auto write = [&]() {
    const absl::Status status =
        buffer->Extend(AgentSteps(kRows, next)).status();
    for (int64_t i = 0; i < kRows; ++i, ++next) {
      if (status.ok()) taken.push_back(next);
    }
    return status;
  };
  const auto expect_rows_of_their_slots = [&]() {
    EXPECT_EQ(tiers->size(), static_cast<int64_t>(taken.size()));
    for (int i = 0; i < 8; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
      ExpectAllOn(DeviceUnderTest(), batch);
      RILL_ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> numbers,
                                NumbersOf(batch));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
      RILL_ASSERT_OK_AND_ASSIGN(const auto slots, host.Flat<int64_t>("index"));
      for (size_t row = 0; row < numbers.size(); ++row) {
        EXPECT_EQ(numbers[row], taken[slots[row]]);
      }
    }
  };
  RILL_ASSERT_OK(write());
  {
    const ScopedFaultHook full("file.reserve",
                               absl::ResourceExhaustedError("full"));
    absl::Status status;
    while (status.ok() && next < kCapacity) status = write();
    ASSERT_THAT(status, IsResourceExhausted());
    expect_rows_of_their_slots();
  }
  RILL_ASSERT_OK(write());
  expect_rows_of_their_slots();
}

// A batch that was handed out on its way stays what it is, whatever is written
// over its rows meanwhile.
TEST(TorchRlFailuresTest, F5_ABatchOnItsWayIsNotWrittenOver) {
  constexpr int64_t kCapacity = 64;
  for (const bool from_device : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto rows,
        DenseStorage::Create(
            {.capacity = kCapacity,
             .device = from_device ? DeviceUnderTest() : Device::Cpu()}));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto buffer,
        ReplayBuffer::Create({.storage = std::move(rows),
                              .sampler = MakeUniformSampler(),
                              .batch_size = 32,
                              .device = DeviceUnderTest()}));
    std::vector<ReplayBuffer::PendingBatch> pending;
    for (int64_t first = 0; first < 6 * kCapacity; first += kCapacity) {
      RILL_ASSERT_OK(buffer->Extend(AgentSteps(kCapacity, first)).status());
      RILL_ASSERT_OK_AND_ASSIGN(pending.emplace_back(),
                                buffer->SamplePending());
    }
    for (size_t round = 0; round < pending.size(); ++round) {
      if (pending[round].copied != nullptr) {
        RILL_ASSERT_OK(pending[round].copied->Synchronize());
      }
      RILL_ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> numbers,
                                NumbersOf(pending[round].batch));
      for (const int64_t number : numbers) {
        EXPECT_EQ(number / kCapacity, static_cast<int64_t>(round));
      }
    }
  }
}

}  // namespace
}  // namespace rill
