// SPDX-License-Identifier: Apache-2.0
#include "rill/device/staging/staging_ring.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;

constexpr int64_t kRing = StagingRing::kMinBytes;

class StagingRingTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    stream_ = std::make_unique<Stream>(*Stream::Create(Device::Fake(0)));
    ring_ = std::make_unique<StagingRing>(Device::Fake(0));
  }
  void TearDown() override {
    ring_.reset();
    to_.clear();
    stream_.reset();
    FakeDeviceTest::TearDown();
  }

  // Copies `bytes` times `value` to memory of the device, which to_ gets.
  absl::Status Send(uint8_t value, int64_t bytes) {
    auto to =
        Buffer::Allocate(bytes, Device::Fake(0), MemoryKind::kDevice).value();
    auto part = ring_->Take(bytes);
    if (!part.ok()) return part.status();
    std::memset(part->host, value, static_cast<size_t>(bytes));
    absl::Status status = CopyAsync(to->data(), part->host, bytes, *stream_);
    status.Update(ring_->Release(*stream_));
    to_.push_back(std::move(to));
    return status;
  }
  // What was sent as the i-th is all `value`.
  bool HasSent(size_t i, uint8_t value) const {
    const auto bytes = *fake_->Peek(0, to_[i]->data(), to_[i]->size_bytes());
    return std::count(bytes.begin(), bytes.end(), value) == std::ssize(bytes);
  }
  std::unique_ptr<Stream> stream_;
  std::vector<std::shared_ptr<Buffer>> to_;
  std::unique_ptr<StagingRing> ring_;
};

TEST_F(StagingRingTest, Example) {
  int64_t from = 7;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto to,
      Buffer::Allocate(sizeof(from), Device::Fake(0), MemoryKind::kDevice));
  RILL_ASSERT_OK_AND_ASSIGN(const StagingRing::Part part,
                            ring_->Take(sizeof(from)));
  std::memcpy(part.host, &from, sizeof(from));
  RILL_ASSERT_OK(CopyAsync(to->data(), part.host, sizeof(from), *stream_));
  RILL_ASSERT_OK(ring_->Release(*stream_));
  from = 8;  // Ours again.
  RILL_ASSERT_OK(stream_->Synchronize());
  EXPECT_EQ(fake_->Peek(0, to->data(), 1)->front(), 7);
}

TEST_F(StagingRingTest, BytesStayUntilTheStreamHasReadThem) {
  // Parts of all sizes, many times round the ring, while the stream is late.
  for (int i = 0; i < 100; ++i) {
    RILL_ASSERT_OK(Send(static_cast<uint8_t>(i), 1 + i * 7919 % (kRing / 4)));
    if (i % 3 == 0) fake_->RunOne(0, stream_->handle());
  }
  EXPECT_EQ(ring_->size_bytes(), kRing);
  RILL_ASSERT_OK(stream_->Synchronize());
  for (size_t i = 0; i < to_.size(); ++i) {
    ASSERT_TRUE(HasSent(i, static_cast<uint8_t>(i))) << i;
  }
}

TEST_F(StagingRingTest, WaitsOnlyWhereAllIsInUse) {
  RILL_ASSERT_OK(Send(0, 64));
  fake_->StartCalls();
  for (uint8_t i = 1; i < 4; ++i) RILL_ASSERT_OK(Send(i, kRing / 4));
  EXPECT_EQ(TakeWaits(), 0);
  fake_->StartCalls();
  RILL_ASSERT_OK(Send(4, kRing / 4));
  EXPECT_GT(TakeWaits(), 0);
  RILL_ASSERT_OK(stream_->Synchronize());
  for (uint8_t i = 0; i < 5; ++i) EXPECT_TRUE(HasSent(i, i));
}

TEST_F(StagingRingTest, SteadyUseAllocatesNothing) {
  RILL_ASSERT_OK(Send(0, 100));
  const int64_t pinned = fake_->NumAllocations(0, MemoryKind::kPinned);
  for (int i = 0; i < 200; ++i) RILL_ASSERT_OK(Send(1, 1000));
  EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), pinned);
  // Small parts share events.
  EXPECT_LT(fake_->NumStreamsAndEvents(), 20);
}

TEST_F(StagingRingTest, GrowsBehindWhatIsUnderWay) {
  RILL_ASSERT_OK(Send(1, 100));
  RILL_ASSERT_OK(Send(2, kRing));
  RILL_ASSERT_OK(Send(3, 2 * StagingRing::kMaxBytes));
  EXPECT_EQ(ring_->size_bytes(), 2 * StagingRing::kMaxBytes);
  RILL_ASSERT_OK(stream_->Synchronize());
  for (uint8_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(HasSent(i, static_cast<uint8_t>(i + 1)));
  }
}

TEST_F(StagingRingTest, WithoutMemoryNothingIsTaken) {
  for (int nth = 1; nth <= 2; ++nth) {
    fake_->FailNext(FakeBackend::Operation::kAllocate, nth,
                    absl::ResourceExhaustedError("full"));
    EXPECT_THAT(ring_->Take(8), StatusIs(absl::StatusCode::kResourceExhausted));
  }
  RILL_EXPECT_OK(Send(5, 8));
}

TEST_F(StagingRingTest, WhatCannotBeMarkedIsDoneBeforeItsBytesAreUsedAgain) {
  RILL_ASSERT_OK(ring_->Take(8));
  fake_->FailNext(FakeBackend::Operation::kCreateEvent, 1,
                  absl::UnavailableError("no event"));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto to,
      Buffer::Allocate(64, Device::Fake(0), MemoryKind::kDevice));
  RILL_ASSERT_OK_AND_ASSIGN(const StagingRing::Part part, ring_->Take(64));
  std::memset(part.host, 9, 64);
  RILL_ASSERT_OK(CopyAsync(to->data(), part.host, 64, *stream_));
  EXPECT_THAT(ring_->Release(*stream_),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(fake_->NumPending(0, stream_->handle()), 0);
  EXPECT_THAT(*fake_->Peek(0, to->data(), 64), Each(9));
  RILL_EXPECT_OK(Send(5, 8));
}

}  // namespace
}  // namespace rill
