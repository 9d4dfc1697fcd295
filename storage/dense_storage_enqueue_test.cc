// SPDX-License-Identifier: Apache-2.0
// Reads and writes that are enqueued, on a device whose streams run when the
// test says so.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A batch [steps] whose only leaf holds first, first + 1, ...
TensorDict Steps(int64_t first, int64_t steps) {
  TensorDict batch({steps});
  auto tensor = Tensor::Zeros(DType::kInt64, {steps});
  RILL_EXPECT_OK(tensor);
  for (int64_t i = 0; i < steps; ++i) tensor->data<int64_t>()[i] = first + i;
  RILL_EXPECT_OK(batch.Set("step", *tensor));
  return batch;
}

// The values of a batch on the device; waits for the default stream only.
std::vector<int64_t> Values(const TensorDict& rows) {
  auto host = rows.To(Device::Cpu());
  RILL_EXPECT_OK(host);
  auto values = host->Flat<int64_t>("step");
  RILL_EXPECT_OK(values);
  return {values->begin(), values->end()};
}

// Steps 0, 1, 2, 3 in slots 0 .. 3 of a full ring on the device.
class EnqueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = FakeBackend::Install({});
    auto storage =
        DenseStorage::Create({.capacity = 4, .device = Device::Fake(0)});
    RILL_ASSERT_OK(storage);
    storage_ = *std::move(storage);
    RILL_ASSERT_OK(storage_->Extend(Steps(0, 4)));
    fake_->RunAll();
    stream_ = std::make_unique<Stream>(*Stream::Create(Device::Fake(0)));
  }
  void TearDown() override {
    out_ = TensorDict();
    stream_.reset();
    storage_.reset();
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
  }

  absl::StatusOr<Event> Enqueue(const std::vector<Slot>& slots) {
    return storage_->EnqueueRead(slots, *stream_, &out_);
  }

  int64_t HostWaits() {
    const std::vector<FakeBackend::Call> calls = fake_->TakeCalls();
    return std::count_if(calls.begin(), calls.end(), [](const auto& call) {
      return call.kind == FakeBackend::Call::Kind::kSynchronizeStream ||
             call.kind == FakeBackend::Call::Kind::kSynchronizeEvent;
    });
  }

  FakeBackend* fake_ = nullptr;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Stream> stream_;
  TensorDict out_;
};

TEST_F(EnqueueTest, GoesOnBeforeARowIsCopied) {
  std::vector<Slot> slots = {2, 0};
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Enqueue(slots));
  EXPECT_THAT(event.IsComplete(), IsOkAndHolds(false));
  EXPECT_GT(fake_->NumPending(0, stream_->handle()), 0);
  slots = {3, 3};  // Ours again.
  RILL_ASSERT_OK(event.Synchronize());
  EXPECT_THAT(event.IsComplete(), IsOkAndHolds(true));
  EXPECT_THAT(Values(out_), ElementsAre(2, 0));
}

TEST_F(EnqueueTest, ReusesTensorsThatFit) {
  RILL_ASSERT_OK(Enqueue({0, 1})->Synchronize());
  const int64_t allocations = fake_->Count(FakeBackend::Operation::kAllocate);
  RILL_ASSERT_OK(Enqueue({3, 2})->Synchronize());
  EXPECT_EQ(fake_->Count(FakeBackend::Operation::kAllocate), allocations);
  EXPECT_THAT(Values(out_), ElementsAre(3, 2));
}

TEST_F(EnqueueTest, AWriteThatBeginsLaterComesBehindTheRead) {
  RILL_ASSERT_OK_AND_ASSIGN(const Event read, Enqueue({0, 1, 2, 3}));
  fake_->StartCalls();
  RILL_ASSERT_OK(storage_->Extend(Steps(4, 2)));
  EXPECT_EQ(HostWaits(), 0);
  RILL_ASSERT_OK(read.Synchronize());
  EXPECT_THAT(Values(out_), ElementsAre(0, 1, 2, 3));
  RILL_ASSERT_OK_AND_ASSIGN(const Event again, Enqueue({0, 1, 2, 3}));
  RILL_ASSERT_OK(storage_->WriteAt({3}, Steps(9, 1)));
  fake_->RunAll();
  RILL_ASSERT_OK(again.Synchronize());
  EXPECT_THAT(Values(out_), ElementsAre(4, 5, 2, 3));
}

// --- Writes ------------------------------------------------------------------

TEST_F(EnqueueTest, AWriteFromTheHostHasTakenItsRowsWhenItReturns) {
  TensorDict rows = Steps(4, 2);
  RILL_ASSERT_OK(storage_->Read({0}, &out_));
  fake_->StartCalls();
  RILL_ASSERT_OK(storage_->Extend(rows));
  EXPECT_EQ(HostWaits(), 0);
  rows.Find("step")->data<int64_t>()[0] = 99;
  RILL_ASSERT_OK(storage_->Read({0, 1}, &out_));
  EXPECT_THAT(Values(out_), ElementsAre(4, 5));
}

TEST_F(EnqueueTest, ABatchOnTheDeviceIsThatOfTheCurrentStream) {
  for (const bool has_scope : {true, false}) {
    RILL_ASSERT_OK_AND_ASSIGN(const Stream other,
                              Stream::Create(Device::Fake(0)));
    RILL_ASSERT_OK_AND_ASSIGN(
        const Stream stream,
        Stream::Borrow(Device::Fake(0),
                       has_scope ? other.handle() : StreamHandle()));
    const TensorDict host = Steps(7, 2);
    {
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, host.To(Device::Fake(0)));
      const Tensor values = *batch.Find("step");
      RILL_ASSERT_OK(
          values.CopyFrom(*Steps(1, 2).Find("step")->To(Device::Fake(0))));
      // A simulator's: the values are there when its stream got there.
      RILL_ASSERT_OK(CopyAsync(values.raw_data(), host.Find("step")->raw_data(),
                               values.size_bytes(), stream));
      fake_->StartCalls();
      {
        std::optional<StreamScope> scope;
        if (has_scope) scope.emplace(other);
        RILL_ASSERT_OK(storage_->Extend(batch));
      }
      for (const FakeBackend::Call& call : fake_->TakeCalls()) {
        EXPECT_EQ(call.kind, FakeBackend::Call::Kind::kCopy);
        EXPECT_TRUE(call.from_device && call.to_device);
      }
      RILL_ASSERT_OK(CopyAsync(
          values.raw_data(), Steps(0, 2).Find("step")->raw_data(), 0, stream));
      const int64_t pending = fake_->NumPending(0, stream.handle());
      EXPECT_GT(pending, 0);
    }
    // The batch is gone for its writer.
    const std::vector<Slot> slots =
        has_scope ? std::vector<Slot>{0, 1} : std::vector<Slot>{2, 3};
    RILL_ASSERT_OK(storage_->Read(slots, &out_));
    EXPECT_THAT(Values(out_), ElementsAre(7, 8));
    fake_->RunAll();
  }
}

// Writers and readers on many streams, in all orders in which these may run.
TEST_F(EnqueueTest, NoInterleavingMixesWritesOfHostAndDevice) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RILL_ASSERT_OK_AND_ASSIGN(const Stream other,
                              Stream::Create(Device::Fake(0)));
    const StreamScope scope(other);
    const int64_t step = 8 * static_cast<int64_t>(seed);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                              Steps(step, 2).To(Device::Fake(0)));
    RILL_ASSERT_OK(storage_->Extend(there));
    RILL_ASSERT_OK(storage_->Extend(Steps(step + 2, 2)));
    TensorDict first, second;
    RILL_ASSERT_OK_AND_ASSIGN(
        const Event one, storage_->EnqueueRead({0, 1, 2, 3}, *stream_, &first));
    RILL_ASSERT_OK(storage_->WriteAt({3}, Steps(step + 7, 1)));
    RILL_ASSERT_OK(storage_->WriteAt({1, 2}, there));
    RILL_ASSERT_OK_AND_ASSIGN(
        const Event two,
        storage_->EnqueueRead({0, 1, 2, 3}, *stream_, &second));
    fake_->RunAll(seed);
    EXPECT_THAT(Values(first), ElementsAre(step, step + 1, step + 2, step + 3));
    EXPECT_THAT(Values(second), ElementsAre(step, step, step + 1, step + 7));
  }
}

TEST_F(EnqueueTest, AFailureIsToldWhateverIsWrittenNext) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                            Steps(4, 1).To(Device::Fake(0)));
  fake_->FailNext(FakeBackend::Operation::kScatterRows, 1,
                  absl::UnavailableError("fell off the bus"));
  RILL_ASSERT_OK(storage_->Extend(there));        // On the default stream.
  RILL_ASSERT_OK(storage_->Extend(Steps(5, 1)));  // On the table's.
  fake_->RunAll();
  fake_->Recover();
  EXPECT_THAT(storage_->Extend(Steps(6, 1)), IsUnavailable());
  RILL_EXPECT_OK(storage_->Extend(Steps(6, 1)));
}

TEST_F(EnqueueTest, AWriteOfOtherRowsDoesNotWait) {
  RILL_ASSERT_OK_AND_ASSIGN(const Event read, Enqueue({2, 3}));
  RILL_ASSERT_OK(storage_->Extend(Steps(4, 2)));  // Slots 0 and 1.
  EXPECT_THAT(read.IsComplete(), IsOkAndHolds(false));
  RILL_ASSERT_OK(read.Synchronize());
  EXPECT_THAT(Values(out_), ElementsAre(2, 3));
}

TEST_F(EnqueueTest, ReadsThatEndedAreForgottenWithoutAWrite) {
  for (int i = 0; i < 100; ++i) RILL_ASSERT_OK(Enqueue({0})->Synchronize());
  EXPECT_LT(fake_->NumStreamsAndEvents(), 10);
}

TEST_F(EnqueueTest, AReadBehindAWriteSeesIt) {
  RILL_ASSERT_OK(storage_->Extend(Steps(4, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Enqueue({0, 1}));
  RILL_ASSERT_OK(event.Synchronize());
  EXPECT_THAT(Values(out_), ElementsAre(4, 1));
}

// Every order in which the two streams can run.
TEST_F(EnqueueTest, NoInterleavingMixesReadsWithWrites) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    TensorDict first, second;
    RILL_ASSERT_OK_AND_ASSIGN(const Stream other,
                              Stream::Create(Device::Fake(0)));
    const int64_t step = 4 * static_cast<int64_t>(seed);
    RILL_ASSERT_OK_AND_ASSIGN(const Event one,
                              storage_->EnqueueRead({0, 3}, *stream_, &first));
    RILL_ASSERT_OK_AND_ASSIGN(const Event two,
                              storage_->EnqueueRead({1, 2}, other, &second));
    if (seed % 2 == 0) fake_->RunOne(0, other.handle());
    RILL_ASSERT_OK(storage_->Extend(Steps(step + 4, 4)));
    fake_->RunAll(seed);
    EXPECT_THAT(Values(first), ElementsAre(step, step + 3));
    EXPECT_THAT(Values(second), ElementsAre(step + 1, step + 2));
  }
}

TEST_F(EnqueueTest, RunsOnABorrowedStreamBehindItsOwnersWork) {
  RILL_ASSERT_OK_AND_ASSIGN(const StreamHandle owners, fake_->CreateStream(0));
  {
    RILL_ASSERT_OK_AND_ASSIGN(const Stream borrowed,
                              Stream::Borrow(Device::Fake(0), owners));
    RILL_ASSERT_OK_AND_ASSIGN(const Event event,
                              storage_->EnqueueRead({1}, borrowed, &out_));
    EXPECT_EQ(fake_->NumPending(0, stream_->handle()), 0);
    EXPECT_GT(fake_->NumPending(0, owners), 0);
    RILL_ASSERT_OK(fake_->SynchronizeStream(0, owners));
    EXPECT_THAT(event.IsComplete(), IsOkAndHolds(true));
  }
  EXPECT_THAT(Values(out_), ElementsAre(1));
  // It is its owner's still.
  EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
  RILL_EXPECT_OK(fake_->SynchronizeStream(0, owners));
  fake_->DestroyStream(0, owners);
}

TEST_F(EnqueueTest, WhatFailsLaterIsTheEventsError) {
  fake_->FailNext(FakeBackend::Operation::kGatherRows, 1,
                  absl::UnavailableError("fell off the bus"));
  RILL_ASSERT_OK_AND_ASSIGN(const Event read, Enqueue({0}));
  // A write of the row is none of its business.
  RILL_EXPECT_OK(storage_->Extend(Steps(4, 1)));
  EXPECT_THAT(read.Synchronize(),
              StatusIs(absl::StatusCode::kUnavailable, "fell off the bus"));
  // A later read is refused until the device works again.
  EXPECT_THAT(Enqueue({0}), IsUnavailable());
  fake_->RunAll();
  fake_->Recover();
  RILL_ASSERT_OK_AND_ASSIGN(const Event again, Enqueue({1}));
  RILL_ASSERT_OK(again.Synchronize());
  EXPECT_THAT(Values(out_), ElementsAre(1));
}

TEST_F(EnqueueTest, AStorageThatGoesWaitsForItsReads) {
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Enqueue({0, 1}));
  storage_.reset();
  EXPECT_THAT(event.IsComplete(), IsOkAndHolds(true));
  EXPECT_THAT(Values(out_), ElementsAre(0, 1));
}

TEST_F(EnqueueTest, WhatCannotBeReadLeavesOutAlone) {
  RILL_ASSERT_OK(Enqueue({0, 1})->Synchronize());
  EXPECT_THAT(Enqueue({4}), IsOutOfRange());
  EXPECT_THAT(storage_->EnqueueRead({0}, *stream_, nullptr),
              IsInvalidArgument("null"));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream host, Stream::Create(Device::Cpu()));
  EXPECT_THAT(storage_->EnqueueRead({0}, host, &out_),
              IsInvalidArgument("got one of cpu, want one of fake:0"));
  EXPECT_THAT(Values(out_), ElementsAre(0, 1));
}

}  // namespace
}  // namespace rill
