// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/shared_rings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/testing/status_matchers.h"

namespace rill::channel_internal {
namespace {

constexpr int64_t kPage = 4096;
constexpr uint64_t kTag = 17;

constexpr absl::Duration kNow = absl::ZeroDuration();

absl::Status Put(SharedRings* rings, int64_t ring, const std::string& text) {
  const auto size = static_cast<int64_t>(text.size());
  auto place = rings->Reserve(ring, size, absl::InfiniteDuration());
  if (!place.ok()) return place.status();
  std::memcpy(*place, text.data(), text.size());
  rings->Commit(ring, size);
  return absl::OkStatus();
}

std::string Peek(const SharedRings& rings, int64_t ring) {
  const auto bytes = rings.Readable(ring);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? std::string(reinterpret_cast<const char*>(bytes->data()),
                                  bytes->size())
                    : "";
}

TEST(SharedRingsTest, BytesAreContiguousAcrossTheEndOfTheRing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings,
                            SharedRings::Create(2, kPage, kTag));
  RILL_ASSERT_OK(rings->OpenWriter(1));
  const std::string text(3000, 'x');
  for (int i = 0; i < 10; ++i) {
    const std::string mine = std::to_string(i) + text;
    RILL_ASSERT_OK(Put(rings.get(), 1, mine));
    EXPECT_EQ(Peek(*rings, 1), mine);
    EXPECT_EQ(Peek(*rings, 0), "");
    rings->Release(1, static_cast<int64_t>(mine.size()));
  }
}

TEST(SharedRingsTest, SystemThatGivesNoMemoryIsAnError) {
  const ScopedFaultHook hook("channel.create",
                             absl::ResourceExhaustedError("no memory"));
  EXPECT_THAT(SharedRings::Create(2, kPage, kTag), IsResourceExhausted());
}

TEST(SharedRingsTest, WhatIsNotCommittedIsNotThere) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings,
                            SharedRings::Create(1, kPage, kTag));
  RILL_ASSERT_OK(rings->OpenWriter(0));
  RILL_ASSERT_OK_AND_ASSIGN(std::byte* const place, rings->Reserve(0, 8, kNow));
  std::memcpy(place, "01234567", 8);
  EXPECT_EQ(Peek(*rings, 0), "");
  EXPECT_THAT(rings->WaitForData(kNow), IsDeadlineExceeded());
  rings->Commit(0, 8);
  EXPECT_EQ(Peek(*rings, 0), "01234567");
  RILL_EXPECT_OK(rings->WaitForData(kNow));
}

TEST(SharedRingsTest, AFullRingWaitsForTheReaderUntilTheDeadline) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings,
                            SharedRings::Create(1, kPage, kTag));
  RILL_ASSERT_OK(rings->OpenWriter(0));
  RILL_ASSERT_OK(Put(rings.get(), 0, std::string(kPage - 7, 'a')));
  RILL_EXPECT_OK(rings->Reserve(0, 7, kNow).status());
  EXPECT_THAT(rings->Reserve(0, 8, kNow), IsDeadlineExceeded());
  EXPECT_THAT(rings->WaitUntilReleased(0, kNow), IsDeadlineExceeded());
  rings->Release(0, 1);
  RILL_EXPECT_OK(rings->Reserve(0, 8, kNow).status());
  EXPECT_THAT(rings->Reserve(0, kPage + 1, kNow),
              IsInvalidArgument("at most 4096"));
}

// A ring of a page, so that both sides sleep and wake each other all the time.
TEST(SharedRingsTest, EveryByteArrivesInOrderWhileBothSidesSleep) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings,
                            SharedRings::Create(2, kPage, kTag));
  constexpr int64_t kRecords = 20000;
  const auto write = [&](int64_t ring) {
    ASSERT_TRUE(rings->OpenWriter(ring).ok());
    for (int64_t i = 0; i < kRecords; ++i) {
      auto place = rings->Reserve(ring, 512, absl::InfiniteDuration());
      ASSERT_TRUE(place.ok());
      std::memcpy(*place, &i, sizeof(i));
      rings->Commit(ring, 512);
    }
    EXPECT_TRUE(rings->WaitUntilReleased(ring, absl::InfiniteDuration()).ok());
    rings->CloseWriter(ring);
  };
  std::thread first(write, 0), second(write, 1);
  int64_t read[2] = {};
  while (rings->WaitForData(absl::InfiniteDuration()).ok()) {
    for (int64_t ring = 0; ring < 2; ++ring) {
      const auto bytes = rings->Readable(ring);
      ASSERT_TRUE(bytes.ok());
      for (size_t at = 0; at < bytes->size(); at += 512) {
        int64_t value;
        std::memcpy(&value, bytes->data() + at, sizeof(value));
        ASSERT_EQ(value, read[ring]++);
      }
      rings->Release(ring, static_cast<int64_t>(bytes->size()));
    }
  }
  first.join();
  second.join();
  EXPECT_EQ(read[0], kRecords);
  EXPECT_EQ(read[1], kRecords);
}

TEST(SharedRingsTest, OneWriterARingAndItsStateIsKnown) {
  using State = SharedRings::WriterState;
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings,
                            SharedRings::Create(2, kPage, kTag));
  EXPECT_EQ(rings->writer_state(0), State::kNone);
  EXPECT_THAT(rings->OpenWriter(0), IsOkAndHolds(State::kNone));
  EXPECT_EQ(rings->writer_state(0), State::kAlive);
  EXPECT_THAT(rings->OpenWriter(0),
              IsFailedPrecondition(std::to_string(getpid())));
  EXPECT_THAT(rings->OpenWriter(2), IsOutOfRange());
  EXPECT_THAT(rings->OpenWriter(-1), IsOutOfRange());
  rings->CloseWriter(0);
  EXPECT_EQ(rings->writer_state(0), State::kClosed);
  EXPECT_THAT(rings->WaitForData(kNow),
              IsDeadlineExceeded());  // Ring 1.
  RILL_ASSERT_OK(rings->OpenWriter(1));
  rings->CloseWriter(1);
  EXPECT_THAT(rings->WaitForData(absl::InfiniteDuration()), IsUnavailable());
  RILL_EXPECT_OK(rings->OpenWriter(0));
}

TEST(SharedRingsTest, AnAbandonedRingIsNotReadAndItsWriterKnows) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings,
                            SharedRings::Create(1, kPage, kTag));
  RILL_ASSERT_OK(rings->OpenWriter(0));
  RILL_ASSERT_OK(Put(rings.get(), 0, "abc"));
  rings->Abandon(0);
  EXPECT_EQ(Peek(*rings, 0), "");
  EXPECT_THAT(rings->WaitForData(absl::InfiniteDuration()), IsUnavailable());
  EXPECT_THAT(Put(rings.get(), 0, "d"), IsUnavailable());
  EXPECT_THAT(rings->WaitUntilReleased(0, absl::InfiniteDuration()),
              IsUnavailable());
  rings->CloseWriter(0);
  EXPECT_THAT(rings->OpenWriter(0), IsFailedPrecondition());
}

TEST(SharedRingsTest, MoreThanARingHoldsIsNotReadable) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings,
                            SharedRings::Create(1, kPage, kTag));
  RILL_ASSERT_OK(rings->OpenWriter(0));
  // Where the ring's own numbers begin, which its writer may write over.
  auto* const committed = static_cast<int64_t*>(mmap(
      nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, rings->fd(), kPage));
  ASSERT_NE(committed, MAP_FAILED);
  for (const int64_t bytes : {kPage + 1, int64_t{-1}, INT64_MIN}) {
    *committed = bytes;
    EXPECT_THAT(rings->Readable(0), IsDataLoss());
  }
  *committed = kPage;
  EXPECT_EQ(Peek(*rings, 0).size(), kPage);
  munmap(committed, kPage);
}

TEST(SharedRingsTest, SizesAreChecked) {
  for (const int64_t rings : {int64_t{0}, int64_t{-1}, int64_t{4097}}) {
    EXPECT_THAT(SharedRings::Create(rings, kPage, kTag), IsInvalidArgument());
  }
  for (const int64_t bytes : {int64_t{0}, INT64_MAX}) {
    EXPECT_THAT(SharedRings::Create(1, bytes, kTag), IsInvalidArgument());
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings, SharedRings::Create(1, 1, kTag));
  EXPECT_EQ(rings->ring_bytes(), kPage);
}

TEST(SharedRingsTest, OnlyAChannelsOwnDescriptorIsAttached) {
  const auto attach = [](int fd, uint64_t tag) {
    return SharedRings::Attach(dup(fd), tag).status();
  };
  EXPECT_THAT(attach(-1, kTag), IsInvalidArgument());
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_THAT(attach(null, kTag), IsInvalidArgument());
  close(null);
  const int empty = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(empty, 2 * kPage), 0);
  EXPECT_THAT(attach(empty, kTag), IsInvalidArgument());  // Could be cut short.
  ASSERT_EQ(fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THAT(attach(empty, kTag), IsInvalidArgument());
  close(empty);
  RILL_ASSERT_OK_AND_ASSIGN(const auto rings,
                            SharedRings::Create(1, kPage, kTag));
  EXPECT_NE(ftruncate(rings->fd(), kPage), 0);
  EXPECT_THAT(attach(rings->fd(), kTag + 1), IsInvalidArgument());
}

}  // namespace
}  // namespace rill::channel_internal
