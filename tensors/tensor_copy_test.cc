// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
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

TEST(TensorCopyTest, CloneOwnsItsBytes) {
  const Tensor t = Iota<float>({2, 2});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor copy, t.Clone());
  t.data<float>()[0] = 9;
  EXPECT_THAT(copy, TensorElementsAre<float>(0, 1, 2, 3));
}

TEST(TensorCopyTest, ContiguousCopiesOnlyWhereItMust) {
  const Tensor t = Iota<float>({2, 2});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor same, t.Contiguous());
  EXPECT_EQ(same.raw_data(), t.raw_data());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned, t.Permute({1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor copy, turned.Contiguous());
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_THAT(copy, TensorElementsAre<float>(0, 2, 1, 3));
}

TEST(TensorCopyTest, CopyFromWritesThroughStrides) {
  const Tensor to = *Tensor::Zeros(DType::kInt32, {2, 4});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor column, to.Slice(1, 1, 4, 2));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor from,
      MakeTensor<int32_t>({1, 2, 3, 4}, {2, 2}).Permute({1, 0}));
  RILL_ASSERT_OK(column.CopyFrom(from));
  EXPECT_THAT(to, TensorElementsAre<int32_t>(0, 1, 0, 3, 0, 2, 0, 4));
}

TEST(TensorCopyTest, CopyFromNamesBothSides) {
  const Tensor to = Iota<float>({2, 3});
  EXPECT_THAT(to.CopyFrom(Iota<float>({3, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("float32[3, 2]"),
                             HasSubstr("want float32[2, 3]"))));
  EXPECT_THAT(to.CopyFrom(Iota<double>({2, 3})), IsInvalidArgument("float64"));
  EXPECT_THAT(to, BitEqualTo(Iota<float>({2, 3})));
}

TEST(TensorCopyTest, CopyFromRefusesRepeatedAndReadOnlyDestinations) {
  const Tensor from = Iota<float>({2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide, Iota<float>({3}).Expand({2, 3}));
  EXPECT_THAT(wide.CopyFrom(from),
              IsFailedPrecondition("repeats its elements in dimension 0"));
  float bytes[6] = {};
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor read_only,
      Tensor::View(Buffer::Wrap(bytes, sizeof(bytes), Device::Cpu(),
                                MemoryKind::kMappedFile, nullptr,
                                /*is_writable=*/false),
                   DType::kFloat32, {2, 3}, 0));
  EXPECT_THAT(read_only.CheckCopyFrom(from), IsFailedPrecondition("read-only"));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor copy, read_only.Clone());
  EXPECT_TRUE(copy.is_writable());
  EXPECT_EQ(copy.memory_kind(), MemoryKind::kPageable);
}

TEST(TensorCopyTest, OverlappingCopiesReadFirst) {
  const Tensor t = Iota<int32_t>({6});
  RILL_ASSERT_OK(t.Slice(0, 1, 6)->CopyFrom(*t.Slice(0, 0, 5)));
  EXPECT_THAT(t, TensorElementsAre<int32_t>(0, 0, 1, 2, 3, 4));
  const Tensor square = Iota<int32_t>({2, 2});
  RILL_ASSERT_OK(square.CopyFrom(*square.Permute({1, 0})));
  EXPECT_THAT(square, TensorElementsAre<int32_t>(0, 2, 1, 3));
  RILL_ASSERT_OK(square.CopyFrom(square));
  EXPECT_THAT(square, TensorElementsAre<int32_t>(0, 2, 1, 3));
}

TEST(TensorCopyTest, BitEqualsLooksAtBits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = MakeTensor<float>({nan, 0.0f}, {2});
  EXPECT_THAT(a.BitEquals(*a.Clone()), IsOkAndHolds(true));
  EXPECT_THAT(a.BitEquals(MakeTensor<float>({nan, -0.0f}, {2})),
              IsOkAndHolds(false));
  EXPECT_THAT(a.BitEquals(MakeTensor<float>({nan, 0.0f}, {2, 1})),
              IsOkAndHolds(false));
  EXPECT_THAT(Iota<int32_t>({2}).BitEquals(Iota<float>({2})),
              IsOkAndHolds(false));
}

// --- On a device ------------------------------------------------------------

class TensorDeviceTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), 0);
  }

  FakeBackend* const fake_ = FakeBackend::Install({});
  const Device device_ = Device::Fake();
};

TEST_F(TensorDeviceTest, ToIsCompleteOnReturnAndSharesInPlace) {
  const Tensor t = Iota<int32_t>({2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, t.To(device_));
  EXPECT_EQ(there.device(), device_);
  EXPECT_EQ(there.memory_kind(), MemoryKind::kDevice);
  EXPECT_FALSE(there.is_host());
  EXPECT_EQ(fake_->NumPending(0, {}), 0);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor same, there.To(device_));
  EXPECT_EQ(same.raw_data(), there.raw_data());
  EXPECT_THAT(there.To(Device::Cpu()), IsOkAndHolds(BitEqualTo(t)));
}

TEST_F(TensorDeviceTest, ToCopiesStridedSourcesAndBetweenDevices) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned,
                            Iota<int32_t>({2, 3}).Permute({1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, turned.To(device_));
  EXPECT_THAT(there, BitEqualTo(turned));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor other, there.To(Device::Fake(1)));
  EXPECT_EQ(other.device(), Device::Fake(1));
  EXPECT_THAT(other, BitEqualTo(turned));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor strided, there.Permute({1, 0}));
  EXPECT_THAT(strided.To(Device::Cpu()),
              IsOkAndHolds(BitEqualTo(Iota<int32_t>({2, 3}))));
}

// Bytes that a copy moved between a device and the host.
int64_t HostBytes(absl::Span<const FakeBackend::Call> calls) {
  int64_t bytes = 0;
  for (const FakeBackend::Call& call : calls) {
    if (call.from_device != call.to_device) bytes += call.bytes;
  }
  return bytes;
}

TEST(TensorCopyTest, BytesBetweenDevicesTouchTheHostOnlyWhereTheyMust) {
  for (const bool reach_peers : {true, false}) {
    FakeBackend* const fake =
        FakeBackend::Install({.reach_peers = reach_peers});
    const Tensor t = Iota<int32_t>({2, 3});
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, t.To(Device::Fake(0)));
    fake->StartCalls();
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor other, there.To(Device::Fake(1)));
    EXPECT_EQ(HostBytes(fake->TakeCalls()), reach_peers ? 0 : 2 * 24);
    EXPECT_THAT(other, BitEqualTo(t));
  }
}

TEST_F(TensorDeviceTest, ACopyBetweenDevicesIsBehindTheWorkOfBothStreams) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream zero, Stream::Create(device_));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream one, Stream::Create(Device::Fake(1)));
  const StreamScope zeros(zero);
  const StreamScope ones(one);
  const Tensor::Options on_one = {.device = Device::Fake(1)};
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor from,
      Tensor::Empty(DType::kUInt8, {4}, {.device = device_}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor to,
                            Tensor::Empty(DType::kUInt8, {4}, on_one));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor before,
                            Tensor::Empty(DType::kUInt8, {4}, on_one));
  // On both sides work is pending: `from` is made, and `to` is read.
  RILL_ASSERT_OK(fake_->Fill(0, from.raw_data(), 5, 4, zero.handle()));
  RILL_ASSERT_OK(fake_->Fill(1, to.raw_data(), 9, 4, one.handle()));
  RILL_ASSERT_OK(before.CopyFromAsync(to, one));
  RILL_ASSERT_OK(to.CopyFrom(from));
  EXPECT_THAT(to, TensorElementsAre<uint8_t>(5, 5, 5, 5));
  EXPECT_THAT(before, TensorElementsAre<uint8_t>(9, 9, 9, 9));
}

TEST_F(TensorDeviceTest, AnAsyncCopyBetweenDevicesIsOfOneThatReachesTheOther) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor from,
                            Iota<int32_t>({3}).To(Device::Fake(1)));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor to, Tensor::Empty(DType::kInt32, {3}, {.device = device_}));
  for (const Device side : {Device::Fake(0), Device::Fake(1)}) {
    RILL_ASSERT_OK(to.CopyFrom(*Tensor::Zeros(DType::kInt32, {3})));
    RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(side));
    RILL_ASSERT_OK(to.CopyFromAsync(from, stream));
    EXPECT_EQ(fake_->NumPending(side.index, stream.handle()), 1);
    RILL_ASSERT_OK(stream.Synchronize());
    EXPECT_THAT(to, TensorElementsAre<int32_t>(0, 1, 2));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const Stream cpu, Stream::Default(Device::Cpu()));
  EXPECT_THAT(to.CopyFromAsync(from, cpu), IsInvalidArgument());
}

TEST_F(TensorDeviceTest, FailuresOfACopyBetweenDevicesAreStatuses) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor from, Iota<int32_t>({3}).To(device_));
  const int64_t streams_and_events = fake_->NumStreamsAndEvents();
  // Each call of the backend in turn.
  int64_t failures = 0;
  for (int64_t nth = 1;; ++nth) {
    fake_->FailCall(nth, absl::InternalError("planted"));
    const absl::StatusOr<Tensor> copy = from.To(Device::Fake(1));
    if (!fake_->Recover()) break;
    ++failures;
    EXPECT_THAT(copy, StatusIs(absl::StatusCode::kInternal, "planted")) << nth;
    fake_->RunAll();
    EXPECT_EQ(fake_->NumAllocations(1, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumStreamsAndEvents(), streams_and_events);
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
  }
  EXPECT_GT(failures, 5);
  // The copy itself, and what made the source.
  fake_->FailNext(FakeBackend::Operation::kCopy, 1,
                  absl::DataLossError("copy"));
  EXPECT_THAT(from.To(Device::Fake(1)),
              StatusIs(absl::StatusCode::kDataLoss, "copy"));
  fake_->Recover();
  fake_->FailNext(FakeBackend::Operation::kFill, 1,
                  absl::DataLossError("source"));
  RILL_ASSERT_OK(fake_->Fill(0, from.raw_data(), 1, 4, {}));
  EXPECT_THAT(from.To(Device::Fake(1)),
              StatusIs(absl::StatusCode::kDataLoss, "source"));
  fake_->Recover();
  EXPECT_THAT(from.To(Device::Fake(1)),
              IsOkAndHolds(BitEqualTo(Iota<int32_t>({3}))));
}

TEST_F(TensorDeviceTest, CloneContiguousAndReshapeStayOnTheDevice) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there,
                            Iota<int32_t>({2, 3}).To(device_));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned, there.Permute({1, 0}));
  for (const auto& copy :
       {turned.Clone(), turned.Contiguous(), turned.Reshape({3, 2})}) {
    RILL_ASSERT_OK(copy);
    EXPECT_EQ(copy->device(), device_);
    EXPECT_THAT(*copy, TensorElementsAre<int32_t>(0, 3, 1, 4, 2, 5));
  }
}

TEST_F(TensorDeviceTest, CopyFromWorksInEveryDirection) {
  const Tensor host = *Tensor::Zeros(DType::kInt32, {4});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, host.To(device_));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor other, host.To(Device::Fake(1)));
  RILL_ASSERT_OK(there.CopyFrom(Iota<int32_t>({4})));
  RILL_ASSERT_OK(other.CopyFrom(there));
  RILL_ASSERT_OK(host.CopyFrom(other));
  EXPECT_THAT(host, TensorElementsAre<int32_t>(0, 1, 2, 3));
  RILL_ASSERT_OK(there.Slice(0, 1, 4)->CopyFrom(*there.Slice(0, 0, 3)));
  EXPECT_THAT(there, TensorElementsAre<int32_t>(0, 0, 1, 2));
  EXPECT_THAT(there.Slice(0, 0, 4, 2)->CopyFrom(Iota<int32_t>({2})),
              IsInvalidArgument("must be contiguous"));
}

TEST_F(TensorDeviceTest, AsyncCopyHappensInStreamOrder) {
  const Tensor from = Iota<int32_t>({3});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor pinned, from.Pin(device_));
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_EQ(pinned.device(), Device::Cpu());
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor there,
      Tensor::Empty(DType::kInt32, {3}, {.device = device_}));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device_));
  RILL_ASSERT_OK(there.CopyFromAsync(pinned, stream));
  EXPECT_EQ(fake_->NumPending(0, stream.handle()), 1);
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(there, BitEqualTo(from));
}

TEST_F(TensorDeviceTest, AsyncCopyWantsAFittingStreamAndContiguousSides) {
  const Tensor host = Iota<int32_t>({4});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, host.To(device_));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream cpu, Stream::Default(Device::Cpu()));
  EXPECT_THAT(there.CopyFromAsync(host, cpu),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("stream of cpu"),
                             HasSubstr("want one of fake:0"))));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Default(device_));
  EXPECT_THAT(
      there.Slice(0, 0, 4, 2)->CopyFromAsync(*there.Slice(0, 0, 2), stream),
      IsInvalidArgument());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor copy,
                            Tensor::Empty(DType::kInt32, {4}));
  RILL_ASSERT_OK(copy.CopyFromAsync(host, cpu));
  EXPECT_THAT(copy, BitEqualTo(host));
}

TEST_F(TensorDeviceTest, PinTakesHostMemoryOnly) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned,
                            Iota<int32_t>({2, 3}).Permute({1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor pinned, turned.Pin(device_));
  EXPECT_THAT(pinned, BitEqualTo(turned));
  EXPECT_TRUE(pinned.is_contiguous());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor again, pinned.Pin(device_));
  EXPECT_EQ(again.raw_data(), pinned.raw_data());
  EXPECT_EQ(pinned.DebugString(), "int32[3, 2] pinned {0, 3, 1, 4, 2, 5}");
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, turned.To(device_));
  EXPECT_THAT(there.Pin(device_),
              IsInvalidArgument("is on fake:0, want host memory"));
  EXPECT_THAT(turned.Pin(Device::Cpu()), IsInvalidArgument());
}

TEST_F(TensorDeviceTest, FailedCopiesAreStatusesWithoutLeaks) {
  const Tensor t = Iota<int32_t>({4});
  fake_->FailNext(FakeBackend::Operation::kCopy, 1,
                  absl::InternalError("planted"));
  EXPECT_THAT(t.To(device_), IsInternal());
  fake_->Recover();
  fake_->FailNext(FakeBackend::Operation::kAllocate, 1,
                  absl::ResourceExhaustedError("planted"));
  EXPECT_THAT(t.To(device_), IsResourceExhausted());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, t.To(device_));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor strided, there.Slice(0, 0, 4, 2));
  fake_->FailNext(FakeBackend::Operation::kCopy, 2,
                  absl::InternalError("planted"));
  EXPECT_THAT(strided.Clone(), IsInternal());
  fake_->Recover();
}

TEST_F(TensorDeviceTest, MissingDevicesAreNamed) {
  EXPECT_THAT(Iota<int32_t>({1}).To(Device::Fake(7)), IsInvalidArgument());
}

}  // namespace
}  // namespace rill
