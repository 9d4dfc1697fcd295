// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/sample_queue.h"

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/replay/sampling/sample_queue_fixture.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SampleQueueTest, BatchesAreDrawnWithinTheCallThatIsPrefetchAhead) {
  QueueFixture fixture(2);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kQueueBatch));
  EXPECT_EQ(fixture.queue->batch_number(), 3);
  EXPECT_EQ(fixture.queue->counts().ahead, 2);
  EXPECT_THAT(fixture.Next(), SizeIs(kQueueBatch));
  EXPECT_EQ(fixture.queue->counts().batches, 2);
  EXPECT_EQ(fixture.queue->counts().items, 2 * kQueueBatch);
}

TEST(SampleQueueTest, ADrawThatFailsUsesUpNoNumberAndCountsNothing) {
  QueueFixture fixture(1);
  EXPECT_THAT(fixture.Next(), IsEmpty());
  EXPECT_EQ(fixture.queue->batch_number(), 0);
  EXPECT_EQ(fixture.queue->counts().batches, 0);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  QueueFixture other(0);
  RILL_ASSERT_OK(other.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_EQ(fixture.Next(), other.Next());
}

// Three batches were drawn of eight rows; then another buffer clears the
// storage and writes two. Batches of rows that are gone are drawn anew.
TEST(SampleQueueTest, RowsThatSomebodyClearedAreDrawnAnew) {
  QueueFixture fixture(2);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kQueueBatch));
  RILL_ASSERT_OK(fixture.storage->Clear());
  // The write may wait until those batches are given up.
  std::thread writer(
      [&] { RILL_EXPECT_OK(fixture.storage->Extend(NumberedSteps(1, 2))); });
  PlacedBatch batch;
  const absl::Status first = fixture.queue->Take(kQueueBatch, &batch);
  EXPECT_TRUE(first.ok() || absl::IsFailedPrecondition(first)) << first;
  writer.join();
  for (int i = 0; i < 4; ++i) {
    const std::vector<int64_t> slots = fixture.Next();
    ASSERT_THAT(slots, SizeIs(kQueueBatch));
    for (const int64_t slot : slots) EXPECT_LT(slot, 2);
  }
}

// A status is no sign that rows are gone: nobody cleared them.
TEST(SampleQueueTest, AnErrorIsItsBatchsWhateverItsCode) {
  int64_t calls = 0;
  QueueFixture fixture(1, [&calls](TensorDict*) {
    return ++calls == 2 ? absl::OutOfRangeError("injected") : absl::OkStatus();
  });
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kQueueBatch));
  PlacedBatch batch;
  EXPECT_THAT(fixture.queue->Take(kQueueBatch, &batch), IsOutOfRange());
  EXPECT_THAT(fixture.Next(), SizeIs(kQueueBatch));
  EXPECT_EQ(fixture.queue->counts().batches, 2);
}

TEST(SampleQueueTest, WithoutPrefetchTheCallersMemoryIsUsedAgain) {
  QueueFixture fixture(0);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  PlacedBatch batch;
  RILL_ASSERT_OK(fixture.queue->Take(kQueueBatch, &batch));
  const int64_t* const memory = batch.rows.Get("action")->data<int64_t>();
  RILL_ASSERT_OK(fixture.queue->Take(kQueueBatch, &batch));
  EXPECT_EQ(batch.rows.Get("action")->data<int64_t>(), memory);
}

TEST(SampleQueueTest, ForgottenBatchesAreNotHandedOut) {
  QueueFixture fixture(2);
  fixture.queue->StartWorkers(1);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kQueueBatch));
  fixture.queue->AwaitMade();
  fixture.queue->Forget();
  EXPECT_EQ(fixture.queue->counts().ahead, 0);
  EXPECT_THAT(fixture.Next(), SizeIs(kQueueBatch));
  EXPECT_EQ(fixture.queue->batch_number(), 6);
}

TEST(SampleQueueTest, BatchesAheadGoOnInAnotherQueue) {
  QueueFixture fixture(2);
  fixture.queue->StartWorkers(2);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kQueueBatch));
  fixture.queue->AwaitMade();
  RILL_ASSERT_OK_AND_ASSIGN(std::vector<SampleQueue::Made> ahead,
                            fixture.queue->SaveAhead());
  ASSERT_THAT(ahead, SizeIs(2));
  QueueFixture other(2);
  RILL_ASSERT_OK(other.storage->Extend(NumberedSteps(1, 8)));
  other.queue->SetBatchNumber(3);
  RILL_ASSERT_OK(other.queue->LoadAhead(std::move(ahead)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(other.Next(), fixture.Next()) << i;
}

}  // namespace
}  // namespace rill::replay_internal
