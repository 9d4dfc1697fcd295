// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/device_step_copies.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::envs_internal {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kLanes = 3;

// Three lanes of one number, on the device and in host memory.
class DeviceStepCopiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = FakeBackend::Install({});
    RILL_ASSERT_OK_AND_ASSIGN(copies_,
                              DeviceStepCopies::Create(Device::Fake(), kLanes));
    RILL_ASSERT_OK_AND_ASSIGN(host_,
                              copies_->HostZeros(DType::kFloat32, {kLanes, 1}));
    RILL_ASSERT_OK_AND_ASSIGN(
        leaf_, copies_->DeviceZeros(DType::kFloat32, {kLanes, 1}));
  }
  void TearDown() override {
    copies_ = nullptr;
    host_ = Tensor();
    leaf_ = Tensor();
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), 0);
  }

  static void Set(const Tensor& tensor, const std::vector<float>& values) {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor from,
                              Tensor::From<float>(values, {kLanes, 1}));
    RILL_ASSERT_OK(tensor.CopyFrom(from));
  }
  static Tensor Read(const Tensor& leaf) { return *leaf.To(Device::Cpu()); }

  FakeBackend* fake_ = nullptr;
  std::unique_ptr<DeviceStepCopies> copies_;
  Tensor host_;
  Tensor leaf_;
};

TEST_F(DeviceStepCopiesTest, BeginsWithZerosInPinnedMemory) {
  EXPECT_TRUE(host_.is_pinned());
  EXPECT_THAT(host_, TensorElementsAre<float>(0, 0, 0));
  EXPECT_EQ(leaf_.device(), Device::Fake());
  EXPECT_THAT(Read(leaf_), TensorElementsAre<float>(0, 0, 0));
}

TEST_F(DeviceStepCopiesTest, StepsGoBothWaysAndAreComplete) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor made,
                            copies_->DeviceZeros(DType::kFloat32, {kLanes, 1}));
  copies_->TakeNext(leaf_, host_);
  copies_->GiveNext(made, host_);
  RILL_ASSERT_OK(copies_->Bind());
  Set(leaf_, {1, 2, 3});
  RILL_ASSERT_OK(copies_->StepsToHost());
  EXPECT_THAT(host_, TensorElementsAre<float>(1, 2, 3));
  RILL_ASSERT_OK(copies_->StepsToDevice());
  // The host may write at once.
  Set(host_, {9, 9, 9});
  EXPECT_THAT(Read(made), TensorElementsAre<float>(1, 2, 3));
}

TEST_F(DeviceStepCopiesTest,
       ActionsComeBehindTheDefaultStreamAndAreNotWaitedFor) {
  copies_->TakeAction(leaf_, host_);
  copies_->GiveAction(leaf_, host_);
  RILL_ASSERT_OK(copies_->Bind());
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Default(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor late,
                            Tensor::From<float>({4, 5, 6}, {kLanes, 1}));
  RILL_ASSERT_OK(leaf_.CopyFromAsync(late, stream));
  RILL_ASSERT_OK(copies_->ActionsToHost());
  EXPECT_THAT(host_, TensorElementsAre<float>(4, 5, 6));
  Set(host_, {7, 8, 9});
  RILL_ASSERT_OK(copies_->ActionsToDevice());
  EXPECT_EQ(fake_->NumPending(0, stream.handle()), 1);
  EXPECT_THAT(Read(leaf_), TensorElementsAre<float>(7, 8, 9));
}

TEST_F(DeviceStepCopiesTest, AResetWritesItsRowsOnly) {
  RILL_ASSERT_OK(copies_->TakeRoot(leaf_, host_));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor shown,
                            copies_->DeviceZeros(DType::kFloat32, {kLanes, 1}));
  RILL_ASSERT_OK(copies_->GiveRoot(shown, host_));
  RILL_ASSERT_OK(copies_->Bind());
  Set(leaf_, {1, 2, 3});
  RILL_ASSERT_OK(copies_->RowsToHost({1}));
  EXPECT_THAT(host_, TensorElementsAre<float>(0, 2, 0));
  Set(shown, {7, 7, 7});
  RILL_ASSERT_OK(copies_->RowsToDevice({0, 1}));
  EXPECT_THAT(Read(shown), TensorElementsAre<float>(0, 2, 7));
}

TEST_F(DeviceStepCopiesTest, ALeafThatNobodySeesIsCarried) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor root,
                            copies_->DeviceZeros(DType::kFloat32, {kLanes, 1}));
  copies_->Carry(leaf_, root, host_);
  RILL_ASSERT_OK(copies_->Bind());
  Set(leaf_, {1, 2, 3});
  RILL_ASSERT_OK(copies_->StepsToDevice());
  EXPECT_THAT(Read(root), TensorElementsAre<float>(1, 2, 3));
  Set(host_, {4, 5, 6});
  RILL_ASSERT_OK(copies_->RootsToDevice());
  EXPECT_THAT(Read(root), TensorElementsAre<float>(4, 5, 6));
}

TEST_F(DeviceStepCopiesTest, WithoutLeavesNothingIsCalled) {
  RILL_ASSERT_OK(copies_->Bind());
  fake_->StartCalls();
  RILL_EXPECT_OK(copies_->ActionsToHost());
  RILL_EXPECT_OK(copies_->ActionsToDevice());
  RILL_EXPECT_OK(copies_->StepsToHost());
  RILL_EXPECT_OK(copies_->StepsToDevice());
  RILL_EXPECT_OK(copies_->RowsToHost({0}));
  RILL_EXPECT_OK(copies_->RowsToDevice({0}));
  EXPECT_THAT(fake_->TakeCalls(), IsEmpty());
}

TEST_F(DeviceStepCopiesTest, ErrorsOfTheDeviceComeBack) {
  copies_->TakeNext(leaf_, host_);
  RILL_ASSERT_OK(copies_->GiveRoot(leaf_, host_));
  RILL_ASSERT_OK(copies_->Bind());
  for (const auto operation :
       {FakeBackend::Operation::kCopy, FakeBackend::Operation::kScatterRows}) {
    fake_->FailNext(operation, 1, absl::UnavailableError("gone"));
    absl::Status status = copies_->StepsToHost();
    status.Update(copies_->RowsToDevice({0}));
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    fake_->Recover();
  }
}

}  // namespace
}  // namespace rill::envs_internal
