// SPDX-License-Identifier: Apache-2.0
// Samples that go to a device, and storages that lie on one.
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/device_batches.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/to_device.h"
#include "rill/transforms/values/unary.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ReplayBufferDeviceTest, SampleIsMovedAsTheLastStep) {
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  transforms.push_back(
      *FunctionTransform::Create({.forward = [](TensorDict* batch) {
        return batch->Set(
            "bonus", *Tensor::Zeros(DType::kFloat32, batch->batch_shape()));
      }}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      ReplayBuffer::Create({.storage = MakeStorage(10),
                            .sampler = MakeFakePrioritizedSampler(),
                            .transforms = std::move(transforms),
                            .batch_size = 4,
                            .device = DeviceUnderTest()}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  TensorDict batch;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    ExpectAllOn(DeviceUnderTest(), batch);
    EXPECT_EQ(batch.device(), DeviceUnderTest());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, 10);
    // Priorities come back from there as well.
    RILL_EXPECT_OK(
        buffer->UpdatePriorities(batch, std::vector<float>(4, 1.5f)));
  }
}

TEST(ReplayBufferDeviceTest, SampleOfAStorageOnADeviceLiesThere) {
  RILL_ASSERT_OK_AND_ASSIGN(
      std::shared_ptr<Storage> storage,
      DenseStorage::Create({.capacity = 10, .device = DeviceUnderTest()}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = storage,
                                         .sampler = MakeUniformSampler(),
                                         .batch_size = 4}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  TensorDict batch;
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  const std::byte* before = batch.Find("observation")->raw_data();
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    EXPECT_EQ(batch.Find("observation")->device(), DeviceUnderTest());
    EXPECT_EQ(batch.Find("observation")->raw_data(), before);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, 10);
  }
}

TEST(ReplayBufferDeviceTest, OriginsFollowABatchThatATransformMoved) {
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  transforms.push_back(*ToDevice::Create(DeviceUnderTest()));
  transforms.push_back(*FunctionTransform::Create(
      {.forward = [](TensorDict* batch) { return batch->Delete("index"); }}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = MakeStorage(10),
                                         .sampler = MakeUniformSampler(),
                                         .transforms = std::move(transforms),
                                         .batch_size = 4}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  TensorDict batch;
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    ExpectAllOn(DeviceUnderTest(), batch);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, 10);
  }
}

// A function of the user's, which gets rows of the host.
std::unique_ptr<BatchTransform> OnHost() {
  return *Unary::Create({.in_keys = {"next/reward"},
                         .fn = [](const BoundLeaf&, const BoundLeaf&) {
                           return absl::OkStatus();
                         }});
}

std::unique_ptr<BatchTransform> Halve() {
  return *Unary::Create({.in_keys = {"next/reward"},
                         .fn = [](const BoundLeaf& from, const BoundLeaf& to) {
                           for (size_t i = 0; i < to.As<float>().size(); ++i) {
                             to.As<float>()[i] = from.As<float>()[i] / 2;
                           }
                           return absl::OkStatus();
                         }});
}

TEST(ReplayBufferDeviceTest, TransformsWorkBehindADevice) {
  for (const Device storage_device : {Device::Cpu(), DeviceUnderTest()}) {
    const auto create = [](Device where, bool moves) {
      std::vector<std::unique_ptr<BatchTransform>> transforms;
      if (moves) transforms.push_back(*ToDevice::Create(DeviceUnderTest()));
      transforms.push_back(*RewardScaling::Create({.scale = 3, .loc = 1}));
      // Back to the host for a function of the user's, and there again.
      if (moves) transforms.push_back(*ToDevice::Create(Device::Cpu()));
      transforms.push_back(Halve());
      if (moves) transforms.push_back(*ToDevice::Create(DeviceUnderTest()));
      transforms.push_back(*RewardScaling::Create({.scale = 7, .loc = -1}));
      return *ReplayBuffer::Create(
          {.storage = *DenseStorage::Create(
               {.capacity = 10,
                .device = where,
                .spec = TensorDictSpec::Of(NumberedSteps(1, 1))}),
           .sampler = MakeUniformSampler(),
           .transforms = std::move(transforms),
           .batch_size = 4});
    };
    const auto host = create(Device::Cpu(), /*moves=*/false);
    const auto there = create(storage_device, /*moves=*/true);
    RILL_ASSERT_OK(host->Extend(NumberedSteps(1, 10)));
    RILL_ASSERT_OK(there->Extend(NumberedSteps(1, 10)));
    for (int i = 0; i < 3; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, host->Sample());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, there->Sample());
      EXPECT_EQ(got.Find("next/reward")->device(), DeviceUnderTest());
      RILL_EXPECT_OK(got.To(Device::Cpu())->CheckEqual(want));
    }
  }
}

TEST(ReplayBufferDeviceTest, ATransformOfTheHostBehindADeviceIsNoChain) {
  const auto create = [](Device storage_device,
                         std::vector<absl::string_view> names) {
    std::vector<std::unique_ptr<BatchTransform>> transforms;
    for (const absl::string_view name : names) {
      transforms.push_back(
          name == "ToDevice" ? *ToDevice::Create(DeviceUnderTest()) : OnHost());
    }
    return ReplayBuffer::Create(
               {.storage = *DenseStorage::Create(
                    {.capacity = 10,
                     .device = storage_device,
                     .spec = TensorDictSpec::Of(NumberedSteps(1, 1))}),
                .sampler = MakeUniformSampler(),
                .transforms = std::move(transforms),
                .batch_size = 4})
        .status();
  };
  RILL_EXPECT_OK(create(Device::Cpu(), {"Unary", "ToDevice"}));
  EXPECT_THAT(create(Device::Cpu(), {"Unary", "ToDevice", "Unary"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("transform 2 (Unary)"),
                             HasSubstr("\"next/reward\" lies on " +
                                       DeviceUnderTest().ToString()),
                             HasSubstr("put ToDevice behind this transform"))));
  EXPECT_THAT(create(DeviceUnderTest(), {"Unary"}),
              IsInvalidArgument("transform 0 (Unary)"));
}

TEST(ReplayBufferDeviceTest, SamplesHaveTheirSpec) {
  for (const bool moves_last : {true, false}) {
    ReplayBuffer::Options options = {.storage = MakeStorage(10),
                                     .sampler = MakeFakePrioritizedSampler(),
                                     .batch_size = 4};
    // Its index is put back.
    options.transforms.push_back(*FunctionTransform::Create(
        {.forward = [](TensorDict* batch) { return batch->Delete("index"); },
         .forward_spec =
             [](TensorDictSpec spec) -> absl::StatusOr<TensorDictSpec> {
           spec.Erase("index");
           return spec;
         }}));
    if (moves_last) {
      options.device = DeviceUnderTest();
    } else {
      options.transforms.push_back(*ToDevice::Create(DeviceUnderTest()));
    }
    RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                              ReplayBuffer::Create(std::move(options)));
    EXPECT_TRUE(buffer->SampleSpec()->empty());
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec spec, buffer->SampleSpec());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict sample, buffer->Sample());
    RILL_EXPECT_OK(spec.CheckLayout("Sample", sample));
    EXPECT_EQ(spec.device(), sample.device());
  }
}

// The rows of a storage without a spec are known at the first write.
TEST(ReplayBufferDeviceTest, TheFirstWriteRefusesWhatIsNoChain) {
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  transforms.push_back(*ToDevice::Create(DeviceUnderTest()));
  transforms.push_back(OnHost());
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = MakeStorage(10),
                                         .sampler = MakeUniformSampler(),
                                         .transforms = std::move(transforms),
                                         .batch_size = 4}));
  EXPECT_THAT(buffer->Extend(NumberedSteps(1, 10)),
              IsInvalidArgument("transform 1 (Unary)"));
  EXPECT_EQ(buffer->size(), 0);
}

TEST(ReplayBufferDeviceTest, PendingBatchesAreWholeOnceTheirEventsAre) {
  for (const int64_t prefetch : {0, 3}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer, ReplayBuffer::Create({.storage = MakeStorage(500),
                                           .sampler = MakeUniformSampler(),
                                           .batch_size = 8,
                                           .device = DeviceUnderTest(),
                                           .prefetch = prefetch,
                                           .prefetch_threads = 2}));
    RILL_ASSERT_OK_AND_ASSIGN(
        auto same, ReplayBuffer::Create({.storage = MakeStorage(500),
                                         .sampler = MakeUniformSampler(),
                                         .batch_size = 8}));
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 500)));
    RILL_ASSERT_OK(same->Extend(NumberedSteps(1, 500)));
    std::vector<ReplayBuffer::PendingBatch> pending;
    for (int i = 0; i < 6; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(pending.emplace_back(),
                                buffer->SamplePending());
      ASSERT_NE(pending.back().copied, nullptr);
      ExpectAllOn(DeviceUnderTest(), pending.back().batch);
    }
    for (const ReplayBuffer::PendingBatch& each : pending) {
      RILL_ASSERT_OK(each.copied->Synchronize());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got,
                                each.batch.To(Device::Cpu()));
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, same->Sample());
      want.ClearDevice();
      for (const char* const key : {"observation", "action", "index"}) {
        EXPECT_THAT(got.Find(key)->BitEquals(*want.Find(key)),
                    IsOkAndHolds(true))
            << key;
      }
    }
    // A batch that is dropped while it is on its way.
    RILL_ASSERT_OK(buffer->SamplePending());
  }
}

// Recent rows on the device, all of them in files; samples are made ahead while
// a thread writes.
TEST(ReplayBufferDeviceTest,
     SamplesOfTieredStorageAreWholeWhileRowsAreWritten) {
  constexpr int64_t kCapacity = 512;
  const std::string directory =
      JoinPath(::testing::TempDir(), "replay_device_tiered");
  RILL_ASSERT_OK(RemoveAll(directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto files,
      MemmapStorage::Create({.directory = directory, .capacity = kCapacity}));
  RILL_ASSERT_OK_AND_ASSIGN(
      std::shared_ptr<Storage> storage,
      TieredStorage::Create({.below = std::move(files),
                             .fast_capacity = kCapacity / 4,
                             .device = DeviceUnderTest()}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = storage,
                                         .sampler = MakeUniformSampler(),
                                         .batch_size = 32,
                                         .prefetch = 3,
                                         .prefetch_threads = 2}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, kCapacity)));
  const std::jthread writer([&](const std::stop_token& stop) {
    // Slot i holds step i of some round, as ExpectWholeSteps wants it. A few
    // rows at a time: while all are written over there is none to be drawn.
    constexpr int64_t kWritten = 64;
    for (int64_t first = 0; !stop.stop_requested();
         first = (first + kWritten) % kCapacity) {
      RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, kWritten, first)));
    }
  });
  TensorDict batch;
  for (int i = 0; i < 200; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    EXPECT_EQ(batch.Find("observation")->device(), DeviceUnderTest());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, kCapacity);
  }
}

}  // namespace
}  // namespace rill
