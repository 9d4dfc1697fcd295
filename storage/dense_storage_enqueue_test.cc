// SPDX-License-Identifier: Apache-2.0
// Reads that are enqueued, on a device whose streams run when the test says so.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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
using ::testing::HasSubstr;
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

TEST_F(EnqueueTest, AWriteThatBeginsLaterWaitsForTheRead) {
  RILL_ASSERT_OK_AND_ASSIGN(const Event read, Enqueue({0, 1, 2, 3}));
  RILL_ASSERT_OK(storage_->Extend(Steps(4, 2)));
  EXPECT_THAT(read.IsComplete(), IsOkAndHolds(true));
  EXPECT_THAT(Values(out_), ElementsAre(0, 1, 2, 3));
  RILL_ASSERT_OK_AND_ASSIGN(const Event again, Enqueue({0, 1, 2, 3}));
  RILL_ASSERT_OK(storage_->WriteAt({3}, Steps(9, 1)));
  RILL_ASSERT_OK(again.Synchronize());
  EXPECT_THAT(Values(out_), ElementsAre(4, 5, 2, 3));
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
  // A stream that failed works again once it was waited for.
  EXPECT_THAT(stream_->Synchronize(), StatusIs(absl::StatusCode::kUnavailable));
  RILL_ASSERT_OK_AND_ASSIGN(const Event again, Enqueue({0}));
  RILL_ASSERT_OK(again.Synchronize());
  EXPECT_THAT(Values(out_), ElementsAre(4));
}

TEST_F(EnqueueTest, AStorageThatGoesWaitsForItsReads) {
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Enqueue({0, 1}));
  storage_.reset();
  EXPECT_THAT(event.IsComplete(), IsOkAndHolds(true));
  EXPECT_THAT(Values(out_), ElementsAre(0, 1));
}

TEST_F(EnqueueTest, WhatCannotBeReadLeavesOutAlone) {
  RILL_ASSERT_OK(Enqueue({0, 1})->Synchronize());
  EXPECT_THAT(Enqueue({4}), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(storage_->EnqueueRead({0}, *stream_, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("null")));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream host, Stream::Create(Device::Cpu()));
  EXPECT_THAT(storage_->EnqueueRead({0}, host, &out_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got one of cpu, want one of fake:0")));
  EXPECT_THAT(Values(out_), ElementsAre(0, 1));
}

}  // namespace
}  // namespace rill
