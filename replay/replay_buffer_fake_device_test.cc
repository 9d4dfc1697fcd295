// SPDX-License-Identifier: Apache-2.0
// Copies of samples to a device that runs them late, or fails.
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ReplayBufferFakeDeviceTest, APendingBatchWaitsForNothing) {
  FakeBackend::Install({});
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = MakeStorage(10),
                                         .sampler = MakeUniformSampler(),
                                         .batch_size = 4,
                                         .device = Device::Fake(0)}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(const ReplayBuffer::PendingBatch pending,
                            buffer->SamplePending());
  EXPECT_THAT(pending.copied->IsComplete(), IsOkAndHolds(false));
}

TEST(ReplayBufferFakeDeviceTest, ErrorsOfACopyBelongToItsBatch) {
  FakeBackend* const fake = FakeBackend::Install({});
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = MakeStorage(10),
                                         .sampler = MakeUniformSampler(),
                                         .batch_size = 4,
                                         .device = Device::Fake(0)}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  fake->FailNext(FakeBackend::Operation::kCopy, 1,
                 absl::InternalError("no copy"));
  EXPECT_THAT(buffer->Sample(), IsInternal("no copy"));
  fake->Recover();
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, 10);
  }
}

TEST(ReplayBufferFakeDeviceTest, DeviceWithoutABackendIsRefusedAtOnce) {
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(10),
                                    .sampler = MakeUniformSampler(),
                                    .device = Device::Cuda(0)}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("device"), HasSubstr("cuda"))));
}

TEST(ReplayBufferFakeDeviceTest, F6_WithoutABackendPinningIsAClearErrorAtOnce) {
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(10),
                                    .sampler = MakeUniformSampler(),
                                    .pin_memory = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("pin_memory"), HasSubstr("cuda"))));
}

}  // namespace
}  // namespace rill
