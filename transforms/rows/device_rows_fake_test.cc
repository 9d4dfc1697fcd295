// SPDX-License-Identifier: Apache-2.0
// What a RowwiseTransform asks of a device: launches, memory, no wait.
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/rows/row_step.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = RowStep::Kind;
using Operation = FakeBackend::Operation;

std::unique_ptr<RowwiseTransform> Make(const RowStep& step) {
  return *RowwiseTransform::Make(
      "Step", {.map = *MakeRowStep(step), .in_keys = {"a", "b"}});
}

TensorDict There() {
  TensorDict batch({2});
  RILL_EXPECT_OK(
      batch.Set("a", *Tensor::From<float>({1, 2, 3, 4, 5, 6}, {2, 3})));
  RILL_EXPECT_OK(batch.Set("b", *Tensor::From<float>({-1, 1}, {2, 1})));
  return *batch.To(Device::Fake());
}

bool Waits(const std::vector<FakeBackend::Call>& calls) {
  for (const FakeBackend::Call& call : calls) {
    if (call.kind == FakeBackend::Call::Kind::kSynchronizeStream ||
        call.kind == FakeBackend::Call::Kind::kSynchronizeEvent) {
      return true;
    }
  }
  return false;
}

TEST(DeviceRowsFakeTest, AllLeavesAreOneLaunchOnTheCurrentStream) {
  FakeBackend* const fake = FakeBackend::Install({});
  for (const RowStep& step :
       {RowStep{.scale = {3}, .loc = {1}},
        RowStep{.kind = Kind::kCast, .dtype = DType::kInt64}}) {
    const auto transform = Make(step);
    TensorDict batch = There();
    const Stream stream = *Stream::Create(Device::Fake());
    const int64_t launches = fake->Count(Operation::kLaunch);
    fake->StartCalls();
    {
      const StreamScope scope(stream);
      RILL_ASSERT_OK(transform->Forward(&batch, nullptr));
    }
    EXPECT_EQ(fake->Count(Operation::kLaunch), launches + 1);
    EXPECT_EQ(fake->NumPending(0, {}), 0);
    EXPECT_FALSE(Waits(fake->TakeCalls()));
    RILL_ASSERT_OK(stream.Synchronize());
  }
  EXPECT_THAT(fake->TakeMisuse(), IsEmpty());
}

TEST(DeviceRowsFakeTest, StepsThatKeepTheDtypeWriteInPlace) {
  FakeBackend::Install({});
  const auto transform = Make({.scale = {3}, .loc = {1}});
  TensorDict batch = There();
  const std::byte* const before = batch.Find("a")->raw_data();
  RILL_ASSERT_OK(transform->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("a")->raw_data(), before);
  EXPECT_EQ(batch.To(Device::Cpu())->Find("b")->data<float>()[0], -2);
}

TEST(DeviceRowsFakeTest, ResultsAreUsedAgainOnceTheStreamIsPastThem) {
  FakeBackend* const fake = FakeBackend::Install({});
  const auto cast = Make({.kind = Kind::kCast, .dtype = DType::kFloat64});
  const TensorDict there = There();
  const Stream stream = *Stream::Create(Device::Fake());
  const StreamScope scope(stream);
  for (int i = 0; i < 10; ++i) {
    const int64_t before = fake->Count(Operation::kAllocate);
    TensorDict batch = there;
    RILL_ASSERT_OK(cast->Forward(&batch, nullptr));
    if (i > 2) {
      EXPECT_EQ(fake->Count(Operation::kAllocate), before) << i;
    }
    RILL_ASSERT_OK(stream.Synchronize());
    EXPECT_EQ(batch.To(Device::Cpu())->Find("a")->data<double>()[5], 6);
  }
  EXPECT_THAT(fake->TakeMisuse(), IsEmpty());
}

TEST(DeviceRowsFakeTest, WhatTheStreamStillReadsOutlivesBatchAndTransform) {
  FakeBackend* const fake = FakeBackend::Install({});
  const Stream stream = *Stream::Create(Device::Fake());
  const StreamScope scope(stream);
  Tensor result;
  {
    auto cast = Make({.kind = Kind::kCast, .dtype = DType::kInt32});
    for (int i = 0; i < 4; ++i) {
      TensorDict batch = There();
      RILL_ASSERT_OK(cast->Forward(&batch, nullptr));
      result = *batch.Find("a");
    }
    EXPECT_GT(fake->NumPending(0, stream.handle()), 0);
  }
  EXPECT_EQ(result.To(Device::Cpu())->data<int32_t>()[3], 4);
  EXPECT_THAT(fake->TakeMisuse(), IsEmpty());
}

TEST(DeviceRowsFakeTest, NumbersAreCopiedOnce) {
  FakeBackend* const fake = FakeBackend::Install({});
  const auto norm = *RowwiseTransform::Make(
      "Norm", {.map = *MakeRowStep({.scale = {1, 2, 3}, .loc = {0}}),
               .in_keys = {"a"}});
  TensorDict batch = There();
  RILL_ASSERT_OK(norm->Forward(&batch, nullptr));
  const int64_t copies = fake->Count(Operation::kCopy);
  fake->StartCalls();
  RILL_ASSERT_OK(norm->Forward(&batch, nullptr));
  EXPECT_EQ(fake->Count(Operation::kCopy), copies);
  EXPECT_FALSE(Waits(fake->TakeCalls()));
  EXPECT_EQ(batch.To(Device::Cpu())->Find("a")->data<float>()[5], 54);
}

TEST(DeviceRowsFakeTest, EachFailingCallIsAnErrorAndTheNextWorks) {
  for (const Operation operation :
       {Operation::kAllocate, Operation::kCreateStream,
        Operation::kCreateEvent}) {
    for (int64_t nth = 1; nth < 4; ++nth) {
      FakeBackend* const fake = FakeBackend::Install({});
      {
        const auto cast = *RowwiseTransform::Make(
            "Cast", {.map = *MakeRowStep({.scale = {1, 2, 3}, .loc = {0}}),
                     .in_keys = {"a"},
                     .out_keys = {"c"}});
        TensorDict batch = There();
        fake->FailNext(operation, nth, absl::ResourceExhaustedError("none"));
        absl::Status status;
        for (int i = 0; i < 4 && status.ok(); ++i) {
          status = cast->Forward(&batch, nullptr);
        }
        if (operation != Operation::kCreateStream || nth == 1) {
          EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
        }
        RILL_ASSERT_OK(cast->Forward(&batch, nullptr));
        EXPECT_EQ(batch.To(Device::Cpu())->Find("c")->data<float>()[5], 18);
      }
      EXPECT_THAT(fake->TakeMisuse(), IsEmpty());
      EXPECT_EQ(fake->NumAllocations(0, MemoryKind::kDevice), 0);
      EXPECT_EQ(fake->NumStreamsAndEvents(), 0);
    }
  }
}

TEST(DeviceRowsFakeTest, LeavesOfTwoDevicesAreNamed) {
  FakeBackend::Install({});
  const auto transform = Make({.scale = {3}, .loc = {1}});
  TensorDict batch = There();
  batch.ClearDevice();
  RILL_ASSERT_OK(batch.Set("b", *batch.Find("b")->To(Device::Fake(1))));
  EXPECT_THAT(transform->Forward(&batch, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("Step: \"b\" lies on fake:1, want fake:0")));
}

}  // namespace
}  // namespace rill
