// SPDX-License-Identifier: Apache-2.0
// The suite's fixture, and memory, copies and fills.
#include "rill/device/conformance/backend_conformance.h"

#include <cstring>
#include <thread>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "rill/device/stream.h"
#include "rill/testing/status_matchers.h"

namespace rill {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// A test that skips or asserts inside a helper leaves the helper only.
void BackendConformanceTest::SetUp() {
  if (GetParam().skip_reason != nullptr) {
    if (const std::string reason = GetParam().skip_reason(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  RILL_ASSERT_OK_AND_ASSIGN(backend_, GetBackend(device()));
}

std::shared_ptr<Buffer> BackendConformanceTest::New(int64_t bytes) {
  auto buffer = Buffer::Allocate(bytes, device(), kind());
  EXPECT_THAT(buffer, IsOk());
  return buffer.ok() ? *buffer : nullptr;
}

std::shared_ptr<Buffer> BackendConformanceTest::Upload(
    absl::Span<const uint8_t> bytes) {
  std::shared_ptr<Buffer> buffer = New(bytes.size());
  RILL_EXPECT_OK(
      CopyBlocking(buffer->data(), bytes.data(), bytes.size(), device()));
  return buffer;
}

std::vector<uint8_t> BackendConformanceTest::Download(const void* data,
                                                      int64_t bytes) {
  std::vector<uint8_t> host(bytes, 0xEE);
  RILL_EXPECT_OK(CopyBlocking(host.data(), data, bytes, device()));
  return host;
}

namespace {

std::vector<uint8_t> Pattern(int64_t bytes, int first = 1) {
  std::vector<uint8_t> pattern(bytes);
  for (int64_t i = 0; i < bytes; ++i) pattern[i] = (first + i * 7) % 251;
  return pattern;
}

TEST_P(BackendConformanceTest, SaysItsTypeAndHasTheDevice) {
  EXPECT_EQ(backend()->type(), device().type);
  RILL_ASSERT_OK_AND_ASSIGN(const int count, backend()->NumDevices());
  EXPECT_GT(count, index());
}

TEST_P(BackendConformanceTest, IndexBehindTheLastDeviceIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(const int count, backend()->NumDevices());
  EXPECT_THAT(GetBackend({device().type, count}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want")));
}

TEST_P(BackendConformanceTest, MemoryIsAlignedTo64Bytes) {
  for (const int64_t bytes : {1, 63, 64, 65, 100000, (4 << 20) + 1}) {
    RILL_ASSERT_OK_AND_ASSIGN(void* const data,
                              backend()->Allocate(index(), kind(), bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0) << bytes;
    backend()->Free(index(), kind(), data, bytes);
  }
}

TEST_P(BackendConformanceTest, DevicesOfferPinnedMemoryThatTheHostCanUse) {
  if (device().is_cpu()) GTEST_SKIP() << "the host has nothing to pin for";
  RILL_ASSERT_OK_AND_ASSIGN(
      std::shared_ptr<Buffer> pinned,
      Buffer::Allocate(1000, device(), MemoryKind::kPinned));
  EXPECT_EQ(pinned->device(), Device::Cpu());
  EXPECT_EQ(pinned->memory_kind(), MemoryKind::kPinned);
  const std::vector<uint8_t> pattern = Pattern(1000);
  std::memcpy(pinned->data(), pattern.data(), 1000);
  const std::shared_ptr<Buffer> there = New(1000);
  RILL_ASSERT_OK(CopyBlocking(there->data(), pinned->data(), 1000, device()));
  EXPECT_EQ(Download(there->data(), 1000), pattern);
}

TEST_P(BackendConformanceTest, RefusesKindsThatItDoesNotOffer) {
  const MemoryKind other =
      device().is_cpu() ? MemoryKind::kPinned : MemoryKind::kPageable;
  EXPECT_THAT(backend()->Allocate(index(), other, 64),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(std::string(MemoryKindName(other)))));
  EXPECT_THAT(backend()->Allocate(index(), MemoryKind::kMappedFile, 64),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(BackendConformanceTest, RefusesToAllocateNothing) {
  for (const int64_t bytes : {0, -1}) {
    EXPECT_THAT(
        backend()->Allocate(index(), kind(), bytes),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want > 0")));
  }
}

TEST_P(BackendConformanceTest, MoreMemoryThanThereIsNamesAskedAndFree) {
  EXPECT_THAT(
      backend()->Allocate(index(), kind(), int64_t{1} << 50),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("asked 1125899906842624"), HasSubstr("free"))));
  // And it goes on.
  EXPECT_NE(New(64), nullptr);
}

TEST_P(BackendConformanceTest, CopiesThereAroundAndBack) {
  for (const int64_t bytes : {1, 2, 63, 4096, (3 << 20) + 5}) {
    const std::vector<uint8_t> pattern = Pattern(bytes);
    const std::shared_ptr<Buffer> a = Upload(pattern);
    const std::shared_ptr<Buffer> b = New(bytes);
    RILL_ASSERT_OK(CopyBlocking(b->data(), a->data(), bytes, device()));
    EXPECT_EQ(Download(b->data(), bytes), pattern) << bytes;
  }
}

TEST_P(BackendConformanceTest, CopiesPartsAtAnyOffset) {
  const std::vector<uint8_t> pattern = Pattern(100);
  const std::shared_ptr<Buffer> a = Upload(pattern);
  const std::shared_ptr<Buffer> b = Upload(std::vector<uint8_t>(100, 9));
  RILL_ASSERT_OK(CopyBlocking(b->data() + 3, a->data() + 41, 17, device()));
  std::vector<uint8_t> want(100, 9);
  std::memcpy(want.data() + 3, pattern.data() + 41, 17);
  EXPECT_EQ(Download(b->data(), 100), want);
}

TEST_P(BackendConformanceTest, CopiesBetweenHostMemoryInTheOrderOfTheStream) {
  const std::vector<uint8_t> pattern = Pattern(500);
  const std::shared_ptr<Buffer> a = New(500);
  std::vector<uint8_t> first(500), second(500);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  RILL_ASSERT_OK(CopyAsync(a->data(), pattern.data(), 500, stream));
  RILL_ASSERT_OK(CopyAsync(first.data(), a->data(), 500, stream));
  RILL_ASSERT_OK(CopyAsync(second.data(), first.data(), 500, stream));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_EQ(second, pattern);
}

TEST_P(BackendConformanceTest, CopyOfNothingIsOk) {
  const std::shared_ptr<Buffer> a = New(8);
  RILL_EXPECT_OK(CopyBlocking(a->data(), nullptr, 0, device()));
  RILL_EXPECT_OK(backend()->Copy(index(), nullptr, nullptr, 0, {}));
}

TEST_P(BackendConformanceTest, CopyFromNowhereIsRefused) {
  const std::shared_ptr<Buffer> a = New(8);
  EXPECT_THAT(CopyBlocking(a->data(), nullptr, 8, device()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CopyBlocking(nullptr, a->data(), 8, device()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CopyBlocking(a->data(), a->data(), -8, device()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(BackendConformanceTest, FillSetsItsRangeOnly) {
  const std::shared_ptr<Buffer> a = Upload(std::vector<uint8_t>(100, 1));
  RILL_ASSERT_OK(backend()->Fill(index(), a->data() + 10, 0x5A, 33, {}));
  RILL_ASSERT_OK(backend()->SynchronizeStream(index(), {}));
  std::vector<uint8_t> want(100, 1);
  std::memset(want.data() + 10, 0x5A, 33);
  EXPECT_EQ(Download(a->data(), 100), want);
  EXPECT_THAT(backend()->Fill(index(), nullptr, 0, 1, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(BackendConformanceTest, ThreadsWithStreamsOfTheirOwnDoNotMeet) {
  std::vector<std::thread> threads;
  std::vector<std::vector<uint8_t>> back(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t, &back] {
      for (int round = 0; round < 20; ++round) {
        const std::vector<uint8_t> pattern = Pattern(5000, t + round);
        const std::shared_ptr<Buffer> there = New(5000);
        back[t].assign(5000, 0);
        RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                                  Stream::Create(device()));
        RILL_ASSERT_OK(CopyAsync(there->data(), pattern.data(), 5000, stream));
        RILL_ASSERT_OK(CopyAsync(back[t].data(), there->data(), 5000, stream));
        RILL_ASSERT_OK(stream.Synchronize());
        ASSERT_EQ(back[t], pattern);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rill
