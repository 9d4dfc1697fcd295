// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class TensorDictWhereTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), 0);
  }

  FakeBackend* const fake_ = FakeBackend::Install({});
  const Device device_ = Device::Fake();
};

TEST_F(TensorDictWhereTest, CloneCopiesBytesIntoOneAllocation) {
  const TensorDict steps = MakeSteps(3);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, steps.Clone());
  EXPECT_THAT(copy, BitEqualTo(steps));
  EXPECT_EQ(copy.Find("action")->buffer(), copy.Find("next/done")->buffer());
  copy.Find("action")->data<int64_t>()[0] = 5;
  EXPECT_EQ(steps.Find("action")->data<int64_t>()[0], 0);
}

TEST_F(TensorDictWhereTest, LargeLeavesAreOnTheirOwn) {
  TensorDict dict;
  RILL_ASSERT_OK(dict.Set("large", Iota<uint8_t>({64 * 1024 + 1})));
  RILL_ASSERT_OK(dict.Set("small", Iota<uint8_t>({64 * 1024})));
  RILL_ASSERT_OK(dict.Set("tiny", Iota<uint8_t>({1})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, dict.Clone());
  EXPECT_NE(copy.Find("large")->buffer(), copy.Find("small")->buffer());
  EXPECT_EQ(copy.Find("tiny")->buffer(), copy.Find("small")->buffer());
  EXPECT_THAT(copy, BitEqualTo(dict));
}

TEST_F(TensorDictWhereTest, ToMovesEveryLeafAndSaysSo) {
  const TensorDict steps = MakeSteps(3);
  EXPECT_EQ(steps.device(), std::nullopt);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, steps.To(device_));
  EXPECT_THAT(there.device(), Optional(device_));
  there.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), device_) << key;
  });
  EXPECT_THAT(there.GetDict("next")->device(), Optional(device_));
  EXPECT_EQ(fake_->NumPending(0, {}), 0);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, there.To(Device::Cpu()));
  EXPECT_THAT(back, BitEqualTo(steps));
  EXPECT_THAT(back.device(), Optional(Device::Cpu()));
}

TEST_F(TensorDictWhereTest, ToCopiesWhatIsElsewhereOnly) {
  TensorDict mixed = MakeSteps(3);
  RILL_ASSERT_OK(mixed.Set("action", *mixed.Find("action")->To(device_)));
  RILL_ASSERT_OK(
      mixed.Set("next/done", *mixed.Find("next/done")->To(Device::Fake(1))));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, mixed.To(device_));
  EXPECT_EQ(there.Find("action")->raw_data(), mixed.Find("action")->raw_data());
  EXPECT_THAT(there, BitEqualTo(MakeSteps(3)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict home, mixed.To(Device::Cpu()));
  EXPECT_THAT(home, BitEqualTo(MakeSteps(3)));
  EXPECT_EQ(home.Find("observation")->raw_data(),
            mixed.Find("observation")->raw_data());
}

TEST_F(TensorDictWhereTest, ABatchGoesToAnotherDeviceWithOneWait) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, MakeSteps(3).To(device_));
  fake_->StartCalls();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict other, there.To(Device::Fake(1)));
  int64_t waits = 0;
  for (const FakeBackend::Call& call : fake_->TakeCalls()) {
    EXPECT_EQ(call.from_device, call.to_device);
    waits += call.kind != FakeBackend::Call::Kind::kCopy;
  }
  EXPECT_EQ(waits, 1);
  EXPECT_THAT(other, BitEqualTo(MakeSteps(3)));
  // Work of the source that has failed is an error of the copies.
  fake_->FailNext(FakeBackend::Operation::kFill, 1,
                  absl::DataLossError("source"));
  const Tensor& action = *there.Find("action");
  RILL_ASSERT_OK(fake_->Fill(0, action.raw_data(), 1, 1, {}));
  EXPECT_THAT(there.To(Device::Fake(1)),
              StatusIs(absl::StatusCode::kDataLoss, "source"));
  fake_->Recover();
  EXPECT_THAT(there.To(Device::Fake(1)),
              IsOkAndHolds(BitEqualTo(MakeSteps(3))));
}

// Also behind a leaf of another device, whose copy is in the current stream.
TEST_F(TensorDictWhereTest, LeavesOfTheHostAreCopiedInTheGivenStream) {
  TensorDict mixed({3});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor zeros,
                            Tensor::Zeros(DType::kUInt8, {3}));
  RILL_ASSERT_OK(mixed.Set("a", *zeros.To(Device::Fake(1))));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor pinned,
      Tensor::Empty(DType::kUInt8, {3}, {device_, MemoryKind::kPinned}));
  RILL_ASSERT_OK(mixed.Set("b", pinned));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream given, Stream::Create(device_));
  fake_->StartCalls();
  std::vector<Tensor> in_flight;
  RILL_ASSERT_OK(mixed.ToAsync(given, &in_flight));
  int64_t copies = 0;
  for (const FakeBackend::Call& call : fake_->TakeCalls()) {
    if (call.kind != FakeBackend::Call::Kind::kCopy || call.from_device) {
      continue;
    }
    ++copies;
    EXPECT_EQ(call.stream, given.handle().value);
  }
  EXPECT_EQ(copies, 1);
  RILL_ASSERT_OK(given.Synchronize());
}

TEST_F(TensorDictWhereTest, UnsetDeviceSkipsNoWork) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict there, MakeSteps(3).To(device_));
  there.ClearDevice();
  EXPECT_EQ(there.device(), std::nullopt);
  EXPECT_EQ(there.GetDict("next")->device(), std::nullopt);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict home, there.To(Device::Cpu()));
  EXPECT_TRUE(home.Find("action")->is_host());
}

TEST_F(TensorDictWhereTest, SetOnADeviceRefusesStrangers) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict there, MakeSteps(3).To(device_));
  EXPECT_THAT(there.Set("next/x", Iota<float>({3})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("device of \"next/x\": got cpu"),
                             HasSubstr("want fake:0"))));
  EXPECT_THAT(there.Set("sub", MakeSteps(3)), IsInvalidArgument());
  EXPECT_FALSE(there.Contains("next/x"));
  there.ClearDevice();
  RILL_EXPECT_OK(there.Set("next/x", Iota<float>({3})));
}

TEST_F(TensorDictWhereTest, ViewsKeepTheDevice) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, MakeSteps(3).To(device_));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row, there.Index(1));
  EXPECT_THAT(row.device(), Optional(device_));
  EXPECT_THAT(row, BitEqualTo(*MakeSteps(3).Index(1)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, there.Clone());
  EXPECT_EQ(copy.Find("action")->device(), device_);
  EXPECT_THAT(copy, BitEqualTo(MakeSteps(3)));
}

TEST_F(TensorDictWhereTest, PinPinsHostLeaves) {
  const TensorDict steps = MakeSteps(3);
  EXPECT_FALSE(steps.is_pinned());
  EXPECT_FALSE(TensorDict().is_pinned());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict pinned, steps.Pin(device_));
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_THAT(pinned, BitEqualTo(steps));
  EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), 1);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict again, pinned.Pin(device_));
  EXPECT_EQ(again.Find("action")->raw_data(),
            pinned.Find("action")->raw_data());
  RILL_ASSERT_OK(pinned.Set("new", Iota<float>({3})));
  EXPECT_FALSE(pinned.is_pinned());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, steps.To(device_));
  EXPECT_THAT(there.Pin(device_), IsOk());  // Has no host leaf.
}

TEST_F(TensorDictWhereTest, StridedLeavesMoveInOrder) {
  TensorDict dict({3});
  RILL_ASSERT_OK(dict.Set("t", *Iota<int32_t>({2, 3}).Permute({1, 0})));
  EXPECT_THAT(dict.To(device_), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(dict.Pin(device_), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(dict.Clone(), IsOkAndHolds(BitEqualTo(dict)));
}

TEST_F(TensorDictWhereTest, AFailedCopyIsAStatusAndLeaksNothing) {
  const TensorDict steps = MakeSteps(3);
  for (int64_t nth = 1; nth <= steps.num_leaves(); ++nth) {
    fake_->FailNext(FakeBackend::Operation::kCopy, nth,
                    absl::InternalError("planted"));
    EXPECT_THAT(steps.To(device_), IsInternal()) << nth;
    fake_->Recover();
  }
  fake_->FailNext(FakeBackend::Operation::kAllocate, 1,
                  absl::ResourceExhaustedError("planted"));
  EXPECT_THAT(steps.Pin(device_), IsResourceExhausted());
}

TEST_F(TensorDictWhereTest, CopyFromCrossesDevices) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict there, MakeSteps(3).To(device_));
  RILL_ASSERT_OK(there.CopyFrom(MakeSteps(3, 50)));
  EXPECT_THAT(there, BitEqualTo(MakeSteps(3, 50)));
  TensorDict home = MakeSteps(3);
  RILL_ASSERT_OK(home.CopyFrom(there));
  EXPECT_THAT(home, BitEqualTo(MakeSteps(3, 50)));
}

TEST_F(TensorDictWhereTest, SizeCountsElementsOfAllLeaves) {
  EXPECT_EQ(MakeSteps(3).size_bytes(), 3 * (16 + 8 + 4 + 1));
  EXPECT_EQ(TensorDict({5}).size_bytes(), 0);
}

}  // namespace
}  // namespace rill
