// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/conformance/backend_conformance.h"
#include "rill/device/stream.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;

constexpr int64_t kBytes = 100000;

std::vector<uint8_t> Filled(uint8_t value) {
  return std::vector<uint8_t>(kBytes, value);
}

TEST_P(BackendConformanceTest, StreamKeepsTheOrderOfItsWork) {
  const std::shared_ptr<Buffer> a = New(kBytes);
  const std::shared_ptr<Buffer> b = New(kBytes);
  std::vector<uint8_t> back(kBytes);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  for (uint8_t value = 1; value <= 20; ++value) {
    RILL_ASSERT_OK(
        backend()->Fill(index(), a->data(), value, kBytes, stream.handle()));
    RILL_ASSERT_OK(CopyAsync(b->data(), a->data(), kBytes, stream));
  }
  RILL_ASSERT_OK(CopyAsync(back.data(), b->data(), kBytes, stream));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(back, Each(20));
}

TEST_P(BackendConformanceTest, EventOrdersWorkOfTwoStreams) {
  const std::shared_ptr<Buffer> a = New(kBytes);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream producer, Stream::Create(device()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream consumer, Stream::Create(device()));
  for (uint8_t value = 1; value <= 10; ++value) {
    const std::vector<uint8_t> source = Filled(value);
    std::vector<uint8_t> back(kBytes);
    RILL_ASSERT_OK(CopyAsync(a->data(), source.data(), kBytes, producer));
    RILL_ASSERT_OK_AND_ASSIGN(const Event written, Event::Record(producer));
    RILL_ASSERT_OK(consumer.WaitFor(written));
    RILL_ASSERT_OK(CopyAsync(back.data(), a->data(), kBytes, consumer));
    RILL_ASSERT_OK(consumer.Synchronize());
    EXPECT_THAT(back, Each(value));
  }
}

// Also for itself, which is nothing, and for the default stream.
TEST_P(BackendConformanceTest, AStreamWaitsForWhatAnotherHas) {
  const std::shared_ptr<Buffer> a = New(kBytes);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream producer, Stream::Create(device()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream consumer, Stream::Default(device()));
  for (uint8_t value = 1; value <= 10; ++value) {
    std::vector<uint8_t> back(kBytes);
    RILL_ASSERT_OK(producer.WaitFor(consumer));
    RILL_ASSERT_OK(producer.WaitFor(producer));
    RILL_ASSERT_OK(
        backend()->Fill(index(), a->data(), value, kBytes, producer.handle()));
    RILL_ASSERT_OK(consumer.WaitFor(producer));
    RILL_ASSERT_OK(CopyAsync(back.data(), a->data(), kBytes, consumer));
    RILL_ASSERT_OK(consumer.Synchronize());
    EXPECT_THAT(back, Each(value));
  }
}

TEST_P(BackendConformanceTest, SynchronizedEventIsComplete) {
  const std::shared_ptr<Buffer> a = New(kBytes);
  const std::vector<uint8_t> source = Filled(3);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  RILL_ASSERT_OK(CopyAsync(a->data(), source.data(), kBytes, stream));
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Event::Record(stream));
  RILL_ASSERT_OK(event.Synchronize());
  EXPECT_THAT(event.IsComplete(), IsOkAndHolds(true));
  EXPECT_THAT(Download(a->data(), kBytes), Each(3));
}

TEST_P(BackendConformanceTest, SynchronizedStreamCompletesItsEvents) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Event::Record(stream));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(event.IsComplete(), IsOkAndHolds(true));
}

TEST_P(BackendConformanceTest, EventThatWasNeverRecordedIsComplete) {
  RILL_ASSERT_OK_AND_ASSIGN(const EventHandle event,
                            backend()->CreateEvent(index()));
  EXPECT_THAT(backend()->IsComplete(index(), event), IsOkAndHolds(true));
  RILL_EXPECT_OK(backend()->SynchronizeEvent(index(), event));
  RILL_EXPECT_OK(backend()->Wait(index(), {}, event));
  RILL_EXPECT_OK(backend()->SynchronizeStream(index(), {}));
  backend()->DestroyEvent(index(), event);
}

TEST_P(BackendConformanceTest, EventThatIsRecordedAgainMeansItsLatestPoint) {
  const std::shared_ptr<Buffer> a = New(kBytes);
  RILL_ASSERT_OK_AND_ASSIGN(const StreamHandle stream,
                            backend()->CreateStream(index()));
  RILL_ASSERT_OK_AND_ASSIGN(const EventHandle event,
                            backend()->CreateEvent(index()));
  for (const uint8_t value : {1, 2}) {
    RILL_ASSERT_OK(backend()->Fill(index(), a->data(), value, kBytes, stream));
    RILL_ASSERT_OK(backend()->Record(index(), event, stream));
  }
  RILL_ASSERT_OK(backend()->SynchronizeEvent(index(), event));
  EXPECT_THAT(Download(a->data(), kBytes), Each(2));
  backend()->DestroyEvent(index(), event);
  backend()->DestroyStream(index(), stream);
}

TEST_P(BackendConformanceTest, DefaultStreamWorks) {
  const std::shared_ptr<Buffer> a = New(kBytes);
  const std::vector<uint8_t> source = Filled(8);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Default(device()));
  RILL_ASSERT_OK(CopyAsync(a->data(), source.data(), kBytes, stream));
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Event::Record(stream));
  RILL_ASSERT_OK(stream.WaitFor(event));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(Download(a->data(), kBytes), Each(8));
}

TEST_P(BackendConformanceTest, BorrowedStreamStaysItsOwners) {
  const std::shared_ptr<Buffer> a = New(kBytes);
  RILL_ASSERT_OK_AND_ASSIGN(const StreamHandle owners,
                            backend()->CreateStream(index()));
  for (const uint8_t value : {1, 2}) {
    RILL_ASSERT_OK(
        backend()->Fill(index(), a->data(), value - 1, kBytes, owners));
    RILL_ASSERT_OK_AND_ASSIGN(const Stream borrowed,
                              Stream::Borrow(device(), owners));
    const std::vector<uint8_t> source = Filled(value);
    RILL_ASSERT_OK(CopyAsync(a->data(), source.data(), kBytes, borrowed));
    RILL_ASSERT_OK(borrowed.Synchronize());
    EXPECT_THAT(Download(a->data(), kBytes), Each(value));
  }
  backend()->DestroyStream(index(), owners);
}

TEST_P(BackendConformanceTest, MovedStreamsAndEventsAreDestroyedOnce) {
  RILL_ASSERT_OK_AND_ASSIGN(Stream a, Stream::Create(device()));
  RILL_ASSERT_OK_AND_ASSIGN(Stream b, Stream::Create(device()));
  b = std::move(a);
  RILL_ASSERT_OK_AND_ASSIGN(Event e, Event::Record(b));
  const Event f = std::move(e);
  RILL_EXPECT_OK(f.Synchronize());
  RILL_EXPECT_OK(b.Synchronize());
}

}  // namespace
}  // namespace rill
