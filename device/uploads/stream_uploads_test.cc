// SPDX-License-Identifier: Apache-2.0
// Values on their way to a device whose streams run when the test says so.
#include "rill/device/uploads/stream_uploads.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/kernels/host_grid.h"
#include "rill/device/kernels/testing/thread_grid.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/device/uploads/upload_kernels.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Operation = FakeBackend::Operation;

class StreamUploadsTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    stream_ = std::make_unique<Stream>(*Stream::Create(Device::Fake(0)));
    uploads_ = std::make_unique<StreamUploads>(Device::Fake(0));
  }
  void TearDown() override {
    uploads_.reset();
    stream_.reset();
    FakeDeviceTest::TearDown();
  }

  // A batch of one mirror with the values first, first + 1, ...
  const int64_t* Upload(int64_t first, int64_t count) {
    RILL_EXPECT_OK(uploads_->Begin(*stream_));
    const auto values = *uploads_->Mirror<int64_t>(count);
    std::iota(values.host, values.host + count, first);
    RILL_EXPECT_OK(uploads_->Send());
    uploads_->End(std::make_shared<const Event>(*Event::Record(*stream_)));
    return values.device;
  }
  std::vector<int64_t> Peek(const int64_t* data, int64_t count) {
    const auto bytes =
        *fake_->Peek(0, data, count * static_cast<int64_t>(sizeof(int64_t)));
    std::vector<int64_t> values(static_cast<size_t>(count));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<StreamUploads> uploads_;
};

TEST_F(StreamUploadsTest, LaunchesComeBehindTheCopiesInOrder) {
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  const auto values = *uploads_->Mirror<int64_t>(1);
  *values.host = 7;
  std::vector<int> launched;
  for (const int number : {1, 2}) {
    uploads_->Behind([&, number](const Stream& stream) {
      EXPECT_EQ(stream.handle().value, stream_->handle().value);
      EXPECT_EQ(fake_->Count(Operation::kLaunch), 1);
      launched.push_back(number);
      return absl::OkStatus();
    });
  }
  EXPECT_THAT(launched, IsEmpty());
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(uploads_->Send());
  EXPECT_THAT(launched, ElementsAre(1, 2));
  uploads_->Behind([](const Stream&) { return absl::InternalError("no"); });
  EXPECT_THAT(uploads_->Send(), StatusIs(absl::StatusCode::kInternal));
  // Dropped, and forgotten with their batch.
  uploads_->Behind([](const Stream&) { return absl::InternalError("no"); });
  uploads_->DropLaunches();
  RILL_EXPECT_OK(uploads_->Send());
  uploads_->Behind([](const Stream&) { return absl::InternalError("no"); });
  RILL_ASSERT_OK(stream_->Synchronize());
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  RILL_EXPECT_OK(uploads_->Send());
  uploads_->End(nullptr);
}

TEST_F(StreamUploadsTest, FixedMirrorsStayWhereTheyAre) {
  Upload(0, 900);
  uploads_->FixMirrors();
  const int64_t* const place = Upload(1, 700);
  for (const int64_t first : {2, 3, 4}) {
    EXPECT_EQ(Upload(first, 700), place);
  }
  RILL_ASSERT_OK(stream_->Synchronize());
  EXPECT_EQ(Peek(place, 700)[0], 4);
  const auto is_other =
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("FixMirrors"));
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  EXPECT_THAT(uploads_->Mirror<int64_t>(800).status(), is_other);
  EXPECT_EQ(Upload(5, 700), place);
}

absl::Status RunExample(const Stream& stream, int64_t n, const int64_t** data) {
  StreamUploads uploads(Device::Fake());
  RILL_RETURN_IF_ERROR(uploads.Begin(stream));
  RILL_ASSIGN_OR_RETURN(auto places, uploads.Mirror<int64_t>(n));
  std::iota(places.host, places.host + n, 0);
  RILL_RETURN_IF_ERROR(uploads.Send());
  *data = places.device;
  RILL_ASSIGN_OR_RETURN(Event end, Event::Record(stream));
  uploads.End(std::make_shared<const Event>(std::move(end)));
  return absl::OkStatus();
}

TEST_F(StreamUploadsTest, Example) {
  const int64_t* data = nullptr;
  RILL_EXPECT_OK(RunExample(*stream_, 8, &data));
  EXPECT_NE(data, nullptr);
}

TEST_F(StreamUploadsTest, TheHostGoesOnAndTheValuesArriveInTheStreamsOrder) {
  fake_->StartCalls();
  const int64_t* const data = Upload(7, 3);
  for (const FakeBackend::Call& call : fake_->TakeCalls()) {
    EXPECT_EQ(call.kind, FakeBackend::Call::Kind::kCompute);
  }
  EXPECT_GT(fake_->NumPending(0, stream_->handle()), 0);
  fake_->RunAll();
  EXPECT_THAT(Peek(data, 3), ElementsAre(7, 8, 9));
}

TEST_F(StreamUploadsTest, BatchesThatAreUnderWayDoNotShareMemory) {
  const int64_t* const first = Upload(0, 3);
  const int64_t* const second = Upload(10, 3);
  EXPECT_NE(first, second);
  fake_->RunAll();
  EXPECT_THAT(Peek(first, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(Peek(second, 3), ElementsAre(10, 11, 12));
}

TEST_F(StreamUploadsTest, TheMemoryOfABatchThatHasEndedServesAgain) {
  const int64_t* const first = Upload(0, 100);
  fake_->RunAll();
  const int64_t allocations = fake_->Count(Operation::kAllocate);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Upload(i, 100), first);
    fake_->RunAll();
  }
  EXPECT_EQ(fake_->Count(Operation::kAllocate), allocations);
}

TEST_F(StreamUploadsTest, ManyBatchesWaitForTheOldest) {
  for (size_t i = 0; i < StreamUploads::kMaxBatches; ++i) Upload(0, 3);
  const int64_t allocations = fake_->Count(Operation::kAllocate);
  fake_->StartCalls();
  Upload(0, 3);
  EXPECT_EQ(fake_->TakeCalls().front().kind,
            FakeBackend::Call::Kind::kSynchronizeEvent);
  EXPECT_EQ(fake_->Count(Operation::kAllocate), allocations);
}

// Pieces of any size and place, more than a launch takes.
TEST_F(StreamUploadsTest, RoomsArriveAtTheirPlacesAndNowhereElse) {
  constexpr int64_t kPieces = 70;
  constexpr int64_t kStep = 64;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto place,
      Buffer::Allocate(kPieces * kStep, Device::Fake(0), MemoryKind::kDevice));
  auto* const to = reinterpret_cast<uint8_t*>(place->data());
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  const int64_t launches = fake_->Count(Operation::kLaunch);
  for (int64_t i = 0; i < kPieces; ++i) {
    // At any place, words or not; some have no byte.
    RILL_ASSERT_OK_AND_ASSIGN(
        uint8_t* const room,
        uploads_->Room<uint8_t>(i % 33, to + i * kStep + i % 17));
    std::memset(room, static_cast<int>(i + 1), static_cast<size_t>(i % 33));
  }
  RILL_ASSERT_OK(uploads_->Send());
  EXPECT_EQ(fake_->Count(Operation::kLaunch) - launches, 3);
  uploads_->End(std::make_shared<const Event>(*Event::Record(*stream_)));
  fake_->RunAll();
  const auto bytes = *fake_->Peek(0, to, kPieces * kStep);
  for (int64_t i = 0; i < kPieces; ++i) {
    for (int64_t at = 0; at < kStep; ++at) {
      const bool is_room = at >= i % 17 && at < i % 17 + i % 33;
      EXPECT_EQ(bytes[static_cast<size_t>(i * kStep + at)],
                is_room ? i + 1 : 0xCD)
          << i << " " << at;
    }
  }
}

TEST_F(StreamUploadsTest, AGrowingBatchKeepsItsRooms) {
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  std::vector<int64_t*> mirrors;
  for (int64_t i = 1; i <= 6; ++i) {
    const int64_t count = 400 * i;
    RILL_ASSERT_OK_AND_ASSIGN(const auto values,
                              uploads_->Mirror<int64_t>(count));
    std::fill_n(values.host, count, i);
    mirrors.push_back(values.device);
  }
  RILL_ASSERT_OK(uploads_->Send());
  uploads_->End(std::make_shared<const Event>(*Event::Record(*stream_)));
  fake_->RunAll();
  for (int64_t i = 1; i <= 6; ++i) {
    EXPECT_THAT(Peek(mirrors[static_cast<size_t>(i - 1)], 400 * i),
                ::testing::Each(i));
  }
}

TEST_F(StreamUploadsTest, WhatIsKeptGoesWithItsBatch) {
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  auto memory = std::make_shared<int>(1);
  uploads_->Keep(memory);
  uploads_->End(std::make_shared<const Event>(*Event::Record(*stream_)));
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  EXPECT_EQ(memory.use_count(), 2);
  uploads_->End(nullptr);
  fake_->RunAll();
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  EXPECT_EQ(memory.use_count(), 1);
  uploads_->End(nullptr);
}

TEST_F(StreamUploadsTest, AFailedBatchCostsNoOther) {
  fake_->FailNext(Operation::kLaunch, 1, absl::InternalError("no launch"));
  Upload(0, 3);
  fake_->RunAll();
  fake_->Recover();
  const int64_t* const data = Upload(5, 2);
  fake_->RunAll();
  EXPECT_THAT(Peek(data, 2), ElementsAre(5, 6));
}

TEST_F(StreamUploadsTest, WithoutMemoryThereIsAnError) {
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  fake_->FailNext(Operation::kAllocate, 2,
                  absl::ResourceExhaustedError("no memory"));
  EXPECT_THAT(uploads_->Mirror<int64_t>(3),
              StatusIs(absl::StatusCode::kResourceExhausted));
  RILL_ASSERT_OK(uploads_->Begin(*stream_));
  RILL_EXPECT_OK(uploads_->Mirror<int64_t>(3));
}

TEST(UploadKernelTest, HasNoRaceAndNoOrder) {
  std::vector<int64_t> from(5000), want(5000), to(5000);
  std::iota(from.begin(), from.end(), 3);
  device_internal::UploadKernel kernel;
  const auto piece = [&](int64_t first, int64_t bytes, int64_t words) {
    kernel.pieces[kernel.count++] = {
        .from = reinterpret_cast<const uint8_t*>(from.data() + first),
        .to = reinterpret_cast<uint8_t*>(to.data() + first),
        .bytes = bytes,
        .words = words};
    std::memcpy(want.data() + first, from.data() + first,
                static_cast<size_t>(bytes));
  };
  piece(0, 8000, 1000);
  piece(1500, 8003, 1000);
  piece(3000, 77, 0);
  RunGridOnHost(kernel, {.blocks = 3, .threads = 32}, /*order=*/5);
  EXPECT_EQ(to, want);
  std::fill(to.begin(), to.end(), 0);
  RunGridOnThreads(kernel, {.blocks = 3, .threads = 32});
  EXPECT_EQ(to, want);
}

}  // namespace
}  // namespace rill
