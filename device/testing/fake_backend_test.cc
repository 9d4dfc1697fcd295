// SPDX-License-Identifier: Apache-2.0
#include "rill/device/testing/fake_backend.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Operation = FakeBackend::Operation;

class FakeBackendTest : public FakeDeviceTest {
 protected:
  std::shared_ptr<Buffer> New(int64_t bytes, int index = 0) {
    return *Buffer::Allocate(bytes, Device::Fake(index), MemoryKind::kDevice);
  }
  std::vector<uint8_t> Peek(const Buffer& buffer) {
    return *fake_->Peek(buffer.device().index, buffer.data(),
                        buffer.size_bytes());
  }
};

// --- order -----------------------------------------------------------------

TEST_F(FakeBackendTest, Example) {
  FakeBackend* fake = FakeBackend::Install({});
  auto device = *Buffer::Allocate(4, Device::Fake(), MemoryKind::kDevice);
  int32_t value = 1;
  auto stream = *Stream::Create(Device::Fake());
  auto copy = CopyAsync(device->data(), &value, sizeof(value), stream);
  value = 2;                             // A bug: the copy has not run yet.
  RILL_EXPECT_OK(stream.Synchronize());  // Now it has, and the device holds 2.
  RILL_EXPECT_OK(copy);
  EXPECT_THAT(fake->Peek(0, device->data(), 4),
              IsOkAndHolds(ElementsAre(2, 0, 0, 0)));
  fake_ = fake;
}

TEST_F(FakeBackendTest, NothingRunsUntilSomebodyWaits) {
  const auto device = New(4);
  const uint8_t source[4] = {1, 2, 3, 4};
  const Stream stream = *Stream::Create(Device::Fake());
  RILL_ASSERT_OK(CopyAsync(device->data(), source, 4, stream));
  const Event event = *Event::Record(stream);
  EXPECT_THAT(Peek(*device), Each(FakeMemory::kNewByte));
  EXPECT_THAT(event.IsComplete(), IsOkAndHolds(false));
  EXPECT_EQ(fake_->NumPending(0, stream.handle()), 2);
  RILL_ASSERT_OK(event.Synchronize());
  EXPECT_THAT(Peek(*device), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(event.IsComplete(), IsOkAndHolds(true));
  EXPECT_EQ(fake_->NumPending(0, stream.handle()), 0);
}

TEST_F(FakeBackendTest, StreamsAreNotOrderedWithoutAnEvent) {
  const auto device = New(1);
  uint8_t source = 7, back = 0;
  const Stream producer = *Stream::Create(Device::Fake());
  const Stream consumer = *Stream::Create(Device::Fake());
  RILL_ASSERT_OK(CopyAsync(device->data(), &source, 1, producer));
  RILL_ASSERT_OK(CopyAsync(&back, device->data(), 1, consumer));
  RILL_ASSERT_OK(consumer.Synchronize());
  EXPECT_EQ(back, FakeMemory::kNewByte);  // The bug that an event would cure.
  RILL_ASSERT_OK(producer.Synchronize());
}

TEST_F(FakeBackendTest, KernelsRunInTheOrderOfTheirStream) {
  const auto device = New(2);
  const Stream stream = *Stream::Create(Device::Fake());
  RILL_ASSERT_OK(fake_->Fill(0, device->data(), 3, 2, stream.handle()));
  RILL_ASSERT_OK(fake_->Launch(
      0, stream.handle(), {{device->data(), 1}, {device->data() + 1, 1}},
      [](absl::Span<std::byte* const> at) {
        *at[1] = static_cast<std::byte>(2 * static_cast<int>(*at[0]));
      }));
  EXPECT_THAT(Peek(*device), Each(FakeMemory::kNewByte));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(Peek(*device), ElementsAre(3, 6));
}

TEST_F(FakeBackendTest, KernelsReachNoPageableMemory) {
  uint8_t host = 0;
  EXPECT_THAT(fake_->Launch(0, {}, {{&host, 1}}, [](auto) {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(FakeBackendTest, DefaultStreamIsNotOrderedWithOthersEither) {
  const auto device = New(1);
  uint8_t source = 7, back = 0;
  const Stream stream = *Stream::Create(Device::Fake());
  RILL_ASSERT_OK(CopyAsync(device->data(), &source, 1, stream));
  RILL_ASSERT_OK(CopyBlocking(&back, device->data(), 1, Device::Fake()));
  EXPECT_EQ(back, FakeMemory::kNewByte);
  RILL_ASSERT_OK(stream.Synchronize());
}

TEST_F(FakeBackendTest, RunOneRunsOneOperationAndRespectsWaits) {
  const auto device = New(1);
  uint8_t source = 7, back = 0;
  const Stream producer = *Stream::Create(Device::Fake());
  const Stream consumer = *Stream::Create(Device::Fake());
  RILL_ASSERT_OK(CopyAsync(device->data(), &source, 1, producer));
  const Event event = *Event::Record(producer);
  RILL_ASSERT_OK(consumer.WaitFor(event));
  RILL_ASSERT_OK(CopyAsync(&back, device->data(), 1, consumer));
  EXPECT_FALSE(fake_->RunOne(0, consumer.handle()));  // It waits.
  EXPECT_TRUE(fake_->RunOne(0, producer.handle()));   // The copy.
  EXPECT_FALSE(fake_->RunOne(0, consumer.handle()));
  EXPECT_TRUE(fake_->RunOne(0, producer.handle()));  // The record.
  EXPECT_FALSE(fake_->RunOne(0, producer.handle()));
  EXPECT_TRUE(fake_->RunOne(0, consumer.handle()));  // The wait.
  EXPECT_TRUE(fake_->RunOne(0, consumer.handle()));
  EXPECT_EQ(back, 7);
}

TEST_F(FakeBackendTest, RunAllTriesOtherInterleavingsBySeed) {
  const Stream a = *Stream::Create(Device::Fake());
  const Stream b = *Stream::Create(Device::Fake());
  const auto device = New(1);
  std::vector<bool> seen(3);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RILL_ASSERT_OK(fake_->Fill(0, device->data(), 1, 1, a.handle()));
    RILL_ASSERT_OK(fake_->Fill(0, device->data(), 2, 1, b.handle()));
    fake_->RunAll(seed);
    seen[Peek(*device)[0]] = true;
  }
  EXPECT_TRUE(seen[1] && seen[2]);
}

TEST_F(FakeBackendTest, PollingEndsWhereOneOperationRunsPerPoll) {
  fake_ = FakeBackend::Install({.run_one_per_poll = true});
  const auto device = New(1);
  const Stream stream = *Stream::Create(Device::Fake());
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(fake_->Fill(0, device->data(), i, 1, stream.handle()));
  }
  const Event event = *Event::Record(stream);
  int polls = 0;
  while (!*event.IsComplete()) ++polls;
  EXPECT_EQ(polls, 4);
  EXPECT_THAT(Peek(*device), ElementsAre(2));
}

TEST_F(FakeBackendTest, WorkOfADestroyedStreamStillRuns) {
  const auto device = New(1);
  std::optional<Event> event;
  {
    const Stream stream = *Stream::Create(Device::Fake());
    RILL_ASSERT_OK(fake_->Fill(0, device->data(), 9, 1, stream.handle()));
    event = *Event::Record(stream);
  }
  RILL_ASSERT_OK(event->Synchronize());
  EXPECT_THAT(Peek(*device), ElementsAre(9));
}

// --- memory ----------------------------------------------------------------

TEST_F(FakeBackendTest, HostCannotTouchDeviceMemory) {
  const auto device = New(8);
  EXPECT_DEATH((void)*static_cast<volatile std::byte*>(device->data()), "");
}

TEST_F(FakeBackendTest, RangesThatLeaveTheirAllocationAreRefused) {
  const auto device = New(100);
  uint8_t host[200] = {};
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("want <= 60 bytes"));
  EXPECT_THAT(CopyBlocking(device->data() + 40, host, 61, Device::Fake()),
              refused);
  EXPECT_THAT(CopyBlocking(host, device->data() + 40, 61, Device::Fake()),
              refused);
  EXPECT_THAT(fake_->Fill(0, device->data() + 40, 0, 61, {}), refused);
  EXPECT_THAT(
      CopyBlocking(host, device->data() + 150, 1, Device::Fake()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no allocation")));
}

TEST_F(FakeBackendTest, RowsOutsideTheTableAreRefused) {
  const auto table = New(40), batch = New(8);
  const RowColumn column = {table->data(), 4, batch->data(), 4, 4};
  const std::vector<int64_t> bad[] = {{0, 10}, {-1, 0}};
  for (const std::vector<int64_t>& rows : bad) {
    EXPECT_THAT(fake_->GatherRows(0, {column}, rows, {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(fake_->ScatterRows(0, {column}, rows, {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(fake_->GatherRows(0, {column}, std::vector<int64_t>{0, 1, 2}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  RILL_EXPECT_OK(
      fake_->GatherRows(0, {column}, std::vector<int64_t>{0, 9}, {}));
  fake_->RunAll();
}

TEST_F(FakeBackendTest, KernelsRefusePageableMemory) {
  std::vector<std::byte> host(64);
  const auto batch = New(8);
  const RowColumn column = {host.data(), 4, batch->data(), 4, 4};
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("pageable memory"));
  EXPECT_THAT(fake_->GatherRows(0, {column}, std::vector<int64_t>{0}, {}),
              refused);
  EXPECT_THAT(fake_->Fill(0, host.data(), 0, 1, {}), refused);
}

TEST_F(FakeBackendTest, MemoryOfAnotherDeviceIsRefused) {
  const auto one = New(8, /*index=*/1);
  uint8_t host[8];
  EXPECT_THAT(CopyBlocking(host, one->data(), 8, Device::Fake(0)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("of fake:1"), HasSubstr("of fake:0"))));
  RILL_EXPECT_OK(CopyBlocking(host, one->data(), 8, Device::Fake(1)));
}

TEST_F(FakeBackendTest, DevicesCopyFromEachOtherWhereTheyReachPeers) {
  for (const bool reach_peers : {true, false}) {
    fake_ = FakeBackend::Install({.reach_peers = reach_peers});
    EXPECT_THAT(ReachesPeer(Device::Fake(0), Device::Fake(1)),
                IsOkAndHolds(reach_peers));
    const auto zero = New(8), one = New(8, /*index=*/1);
    RILL_ASSERT_OK(fake_->Fill(1, one->data(), 3, 8, {}));
    RILL_ASSERT_OK(fake_->SynchronizeStream(1, {}));
    const absl::Status copied =
        CopyBlocking(zero->data(), one->data(), 8, Device::Fake(0));
    if (!reach_peers) {
      EXPECT_THAT(copied, StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("want memory of fake:0")));
      continue;
    }
    RILL_EXPECT_OK(copied);
    EXPECT_THAT(Peek(*zero), Each(3));
  }
}

TEST_F(FakeBackendTest, FreedMemoryIsRefused) {
  uint8_t host[8] = {};
  auto device = New(8);
  void* const data = device->data();
  device.reset();
  EXPECT_THAT(
      CopyBlocking(host, data, 8, Device::Fake()),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("freed")));
  // Also when the next allocation has the same size.
  const auto next = New(8);
  EXPECT_NE(next->data(), data);
}

TEST_F(FakeBackendTest, FreeingWhatQueuedWorkUsesIsMisuseAndTheWorkFails) {
  uint8_t host[8] = {};
  auto device = New(8);
  const Stream stream = *Stream::Create(Device::Fake());
  RILL_ASSERT_OK(CopyAsync(device->data(), host, 8, stream));
  device.reset();
  EXPECT_THAT(fake_->TakeMisuse(),
              ElementsAre(HasSubstr("that queued work still uses")));
  EXPECT_THAT(stream.Synchronize(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("freed before the operation ran")));
}

TEST_F(FakeBackendTest, WrongFreesAreMisuse) {
  uint8_t host = 0;
  void* const data = *fake_->Allocate(0, MemoryKind::kDevice, 8);
  fake_->Free(0, MemoryKind::kDevice, &host, 1);
  fake_->Free(0, MemoryKind::kDevice, data, 9);
  fake_->Free(1, MemoryKind::kDevice, data, 8);
  fake_->Free(0, MemoryKind::kPinned, data, 8);
  EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 1);
  fake_->Free(0, MemoryKind::kDevice, data, 8);
  fake_->Free(0, MemoryKind::kDevice, data, 8);
  EXPECT_EQ(fake_->TakeMisuse().size(), 5);
  EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
}

TEST_F(FakeBackendTest, HandlesThatAreGoneAreRefused) {
  const StreamHandle stream = *fake_->CreateStream(0);
  const EventHandle event = *fake_->CreateEvent(0);
  EXPECT_EQ(fake_->NumStreamsAndEvents(), 2);
  fake_->DestroyStream(0, stream);
  fake_->DestroyEvent(0, event);
  EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("destroyed"));
  EXPECT_THAT(fake_->SynchronizeStream(0, stream), refused);
  EXPECT_THAT(fake_->SynchronizeEvent(0, event), refused);
  EXPECT_THAT(fake_->IsComplete(0, event), refused);
  EXPECT_THAT(fake_->Wait(0, {}, event), refused);
  fake_->DestroyStream(0, stream);
  fake_->DestroyStream(0, {});
  fake_->DestroyEvent(0, event);
  EXPECT_EQ(fake_->TakeMisuse().size(), 3);
}

// --- faults ----------------------------------------------------------------

TEST_F(FakeBackendTest, NthAllocationFails) {
  fake_->FailNext(Operation::kAllocate, 2,
                  absl::ResourceExhaustedError("planted"));
  RILL_EXPECT_OK(Buffer::Allocate(1, Device::Fake(), MemoryKind::kDevice));
  EXPECT_THAT(Buffer::Allocate(1, Device::Fake(), MemoryKind::kDevice),
              StatusIs(absl::StatusCode::kResourceExhausted, "planted"));
  RILL_EXPECT_OK(Buffer::Allocate(1, Device::Fake(), MemoryKind::kDevice));
  EXPECT_EQ(fake_->Count(Operation::kAllocate), 3);
}

// By which a loop that plants the next one each time comes to its end.
TEST_F(FakeBackendTest, RecoverSaysWhetherWhatWasPlantedHasFailed) {
  const absl::Status planted = absl::ResourceExhaustedError("planted");
  const auto allocate = [] {
    return Buffer::Allocate(1, Device::Fake(), MemoryKind::kDevice).status();
  };
  EXPECT_FALSE(fake_->Recover());
  for (const bool comes : {true, false}) {
    fake_->FailNext(Operation::kAllocate, comes ? 1 : 2, planted);
    EXPECT_EQ(allocate().ok(), !comes);
    EXPECT_EQ(fake_->Recover(), comes);
    fake_->FailCall(comes ? 1 : 2, planted);
    EXPECT_EQ(allocate().ok(), !comes);
    EXPECT_EQ(fake_->Recover(), comes);
  }
  RILL_EXPECT_OK(allocate());
}

TEST_F(FakeBackendTest, MemoryIsLimitedForEachDeviceAndKind) {
  fake_ = FakeBackend::Install({.memory_limit_bytes = 1000});
  auto first = New(600);
  EXPECT_THAT(
      Buffer::Allocate(500, Device::Fake(), MemoryKind::kDevice),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("asked 500 bytes"), HasSubstr("400 are free"))));
  RILL_EXPECT_OK(Buffer::Allocate(500, Device::Fake(1), MemoryKind::kDevice));
  RILL_EXPECT_OK(Buffer::Allocate(500, Device::Fake(), MemoryKind::kPinned));
  EXPECT_EQ(fake_->AllocatedBytes(0, MemoryKind::kDevice), 600);
  first.reset();
  EXPECT_EQ(fake_->AllocatedBytes(0, MemoryKind::kDevice), 0);
  RILL_EXPECT_OK(Buffer::Allocate(1000, Device::Fake(), MemoryKind::kDevice));
}

// As on a GPU, whose context takes no call after a kernel that failed.
TEST_F(FakeBackendTest, WorkThatFailsTakesItsDeviceAlong) {
  const auto device = New(1), other = New(1, /*index=*/1);
  uint8_t source = 5, back = 0;
  const Stream stream = *Stream::Create(Device::Fake());
  const Stream beside = *Stream::Create(Device::Fake());
  const Event before = *Event::Record(beside);
  RILL_ASSERT_OK(before.Synchronize());
  fake_->FailNext(Operation::kCopy, 1, absl::InternalError("planted"));
  RILL_ASSERT_OK(CopyAsync(device->data(), &source, 1, stream));
  RILL_ASSERT_OK(CopyAsync(&back, device->data(), 1, stream));
  const Event event = *Event::Record(stream);
  const auto failure = StatusIs(absl::StatusCode::kInternal, "planted");
  EXPECT_THAT(event.Synchronize(), failure);
  EXPECT_EQ(back, 0);  // Work behind the failure was dropped.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(event.IsComplete(), failure);
    EXPECT_THAT(before.IsComplete(), failure);
    EXPECT_THAT(stream.Synchronize(), failure);
    EXPECT_THAT(beside.Synchronize(), failure);
    EXPECT_THAT(CopyAsync(device->data(), &source, 1, beside), failure);
    EXPECT_THAT(Stream::Create(Device::Fake()), failure);
    EXPECT_THAT(Buffer::Allocate(1, Device::Fake(), MemoryKind::kDevice),
                failure);
    EXPECT_THAT(ReachesPeer(Device::Fake(1), Device::Fake(0)), failure);
  }
  // Others know nothing of it.
  RILL_EXPECT_OK(CopyBlocking(other->data(), &source, 1, Device::Fake(1)));
  fake_->Recover();
  EXPECT_THAT(event.IsComplete(), failure);
  EXPECT_THAT(before.IsComplete(), IsOkAndHolds(true));
  RILL_ASSERT_OK(CopyAsync(device->data(), &source, 1, stream));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(Peek(*device), ElementsAre(5));
}

// Two jobs share a stream. Neither knows of the other, so each gets the error.
TEST_F(FakeBackendTest, EachWhoWaitsGetsTheErrorOfDroppedWork) {
  const auto device = New(2);
  const uint8_t source = 5;
  const Stream stream = *Stream::Create(Device::Fake());
  fake_->FailNext(Operation::kCopy, 1, absl::InternalError("planted"));
  RILL_ASSERT_OK(CopyAsync(device->data(), &source, 1, stream));
  RILL_ASSERT_OK(CopyAsync(device->data() + 1, &source, 1, stream));
  EXPECT_THAT(stream.Synchronize(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(stream.Synchronize(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Peek(*device), Each(FakeMemory::kNewByte));
}

// A stream that waits for the event of one that failed has no values to read.
TEST_F(FakeBackendTest, WorkOfOtherStreamsIsDroppedToo) {
  const auto device = New(1);
  const uint8_t source = 5;
  uint8_t back = 0;
  const Stream producer = *Stream::Create(Device::Fake());
  const Stream consumer = *Stream::Create(Device::Fake());
  fake_->FailNext(Operation::kCopy, 1, absl::InternalError("planted"));
  RILL_ASSERT_OK(CopyAsync(device->data(), &source, 1, producer));
  RILL_ASSERT_OK(consumer.WaitFor(producer));
  RILL_ASSERT_OK(CopyAsync(&back, device->data(), 1, consumer));
  EXPECT_THAT(consumer.Synchronize(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(back, 0);
}

TEST_F(FakeBackendTest, StreamsAndEventsCanFailToBeMade) {
  fake_->FailNext(Operation::kCreateStream, 1, absl::InternalError("s"));
  fake_->FailNext(Operation::kCreateEvent, 1, absl::InternalError("e"));
  EXPECT_THAT(Stream::Create(Device::Fake()),
              StatusIs(absl::StatusCode::kInternal, "s"));
  const Stream stream = *Stream::Create(Device::Fake());
  EXPECT_THAT(Event::Record(stream),
              StatusIs(absl::StatusCode::kInternal, "e"));
}

// --- calls -----------------------------------------------------------------

TEST_F(FakeBackendTest, CallsSayWhatCrossedWhereAndWhoWaited) {
  using Kind = FakeBackend::Call::Kind;
  const auto device = New(8);
  const Stream stream = *Stream::Create(Device::Fake());
  uint8_t bytes[8] = {};
  RILL_ASSERT_OK(CopyAsync(device->data(), bytes, 8, stream));  // Not noted.
  fake_->StartCalls();
  RILL_ASSERT_OK(CopyAsync(device->data(), bytes, 8, stream));
  RILL_ASSERT_OK(CopyAsync(bytes, device->data() + 4, 4, stream));
  RILL_ASSERT_OK(fake_->Fill(0, device->data(), 1, 8, stream.handle()));
  RILL_ASSERT_OK(stream.Synchronize());
  const std::vector<FakeBackend::Call> calls = fake_->TakeCalls();
  ASSERT_EQ(calls.size(), 4);
  EXPECT_EQ(calls[0].stream, stream.handle().value);
  EXPECT_EQ(calls[0].bytes, 8);
  EXPECT_TRUE(calls[0].to_device && !calls[0].from_device);
  EXPECT_EQ(calls[1].bytes, 4);
  EXPECT_TRUE(calls[1].from_device && !calls[1].to_device);
  EXPECT_EQ(calls[2].kind, Kind::kCompute);
  EXPECT_EQ(calls[3].kind, Kind::kSynchronizeStream);
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(fake_->TakeCalls(), IsEmpty());
}

TEST_F(FakeBackendTest, RunsSomeOfWhatWaitsWhereAskedTo) {
  fake_ = FakeBackend::Install({.run_some_seed = 1});
  const auto device = New(1);
  const Stream stream = *Stream::Create(Device::Fake());
  uint8_t byte = 0;
  int64_t most = 0;
  int64_t empty = 0;
  for (int i = 0; i < 1000; ++i) {
    RILL_ASSERT_OK(CopyAsync(device->data(), &byte, 1, stream));
    const int64_t waiting = fake_->NumPending(0, stream.handle());
    most = std::max(most, waiting);
    empty += waiting == 0 ? 1 : 0;
  }
  EXPECT_GT(most, 10);
  EXPECT_GT(empty, 3);
  RILL_EXPECT_OK(stream.Synchronize());
}

}  // namespace
}  // namespace rill
