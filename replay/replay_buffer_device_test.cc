// SPDX-License-Identifier: Apache-2.0
// Samples that go to a device, and storages that lie on one.
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/to_device.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void ExpectAllOn(Device device, const TensorDict& batch) {
  batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), device) << key;
  });
}

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
                            .device = Device::Fake(0)}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  TensorDict batch;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    ExpectAllOn(Device::Fake(0), batch);
    EXPECT_EQ(batch.device(), Device::Fake(0));
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
      DenseStorage::Create({.capacity = 10, .device = Device::Fake(0)}));
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
    EXPECT_EQ(batch.Find("observation")->device(), Device::Fake(0));
    EXPECT_EQ(batch.Find("observation")->raw_data(), before);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, 10);
  }
}

TEST(ReplayBufferDeviceTest, OriginsFollowABatchThatATransformMoved) {
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  transforms.push_back(*ToDevice::Create(Device::Fake(0)));
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
    ExpectAllOn(Device::Fake(0), batch);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, 10);
  }
}

// The fake's streams do nothing until somebody waits for them.
TEST(ReplayBufferDeviceTest, PendingBatchesAreWholeOnceTheirEventsAre) {
  FakeBackend* const fake = FakeBackend::Install({});
  for (const int64_t prefetch : {0, 3}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer, ReplayBuffer::Create({.storage = MakeStorage(500),
                                           .sampler = MakeUniformSampler(),
                                           .batch_size = 8,
                                           .device = Device::Fake(0),
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
      ExpectAllOn(Device::Fake(0), pending.back().batch);
    }
    if (prefetch == 0) {  // Else copies are in no order.
      EXPECT_THAT(pending.back().copied->IsComplete(), IsOkAndHolds(false));
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
    buffer.reset();
    pending.clear();
    EXPECT_THAT(fake->TakeMisuse(), IsEmpty());
    EXPECT_EQ(fake->NumStreamsAndEvents(), 0);
  }
}

TEST(ReplayBufferDeviceTest, ErrorsOfACopyBelongToItsBatch) {
  FakeBackend* const fake = FakeBackend::Install({});
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = MakeStorage(10),
                                         .sampler = MakeUniformSampler(),
                                         .batch_size = 4,
                                         .device = Device::Fake(0)}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  fake->FailNext(FakeBackend::Operation::kCopy, 1,
                 absl::InternalError("no copy"));
  EXPECT_THAT(buffer->Sample(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no copy")));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, 10);
  }
}

TEST(ReplayBufferDeviceTest, DeviceWithoutABackendIsRefusedAtOnce) {
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(10),
                                    .sampler = MakeUniformSampler(),
                                    .device = Device::Cuda(0)}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("device"), HasSubstr("cuda"))));
}

}  // namespace
}  // namespace rill
