// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sample_queue.h"

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/doorbell.h"
#include "rill/replay/draw_gate.h"
#include "rill/replay/placement.h"
#include "rill/replay/sample_batches.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/transform_stage.h"
#include "rill/replay/write_counter.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"

namespace rill::replay_internal {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kBatch = 3;

// A queue over 8 slots of one lane, and what it needs; no worker runs before
// StartWorkers.
struct Fixture {
  explicit Fixture(int64_t prefetch,
                   FunctionTransform::Function forward = nullptr) {
    TransformStage::Options options;
    options.sample_spec = [](const TensorDictSpec& rows) { return rows; };
    options.before_waiting = [this] { wake.Ring(); };
    if (forward != nullptr) {
      options.transforms.push_back(
          *FunctionTransform::Create({.forward = std::move(forward)}));
    }
    transforms = *TransformStage::Create(std::move(options));
    EXPECT_THAT(storage->AddObserver(sampler->observer()), IsOk());
    EXPECT_THAT(storage->AddObserver(&writes), IsOk());
    queue = std::make_unique<SampleQueue>(
        SampleQueue::Options{.storage = storage.get(),
                             .sampler = sampler.get(),
                             .writes = &writes,
                             .gate = &gate,
                             .transforms = transforms.get(),
                             .placement = placement.get(),
                             .clock = &Clock::Steady(),
                             .wake = &wake,
                             .batch_size = kBatch,
                             .prefetch = prefetch,
                             .seed = 5});
  }
  ~Fixture() {
    queue.reset();
    storage->RemoveObserver(sampler->observer());
    storage->RemoveObserver(&writes);
  }

  // Slots of the next batch; empty with an error.
  std::vector<int64_t> Next() {
    PlacedBatch batch;
    if (!queue->Take(kBatch, &batch).ok()) return {};
    const auto slots = batch.rows.Get("index")->Flat<int64_t>();
    return {slots->begin(), slots->end()};
  }

  std::shared_ptr<Storage> storage = MakeStorage(8);
  std::unique_ptr<Sampler> sampler = MakeUniformSampler();
  Doorbell wake{4};
  DrawGate gate{[this] { wake.Ring(); }};
  WriteCounter writes{&gate};
  std::unique_ptr<TransformStage> transforms;
  std::unique_ptr<Placement> placement = *Placement::Create({});
  std::unique_ptr<SampleQueue> queue;
};

TEST(SampleQueueTest, BatchesAreDrawnWithinTheCallThatIsPrefetchAhead) {
  Fixture fixture(2);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kBatch));
  EXPECT_EQ(fixture.queue->batch_number(), 3);
  EXPECT_EQ(fixture.queue->counts().ahead, 2);
  EXPECT_THAT(fixture.Next(), SizeIs(kBatch));
  EXPECT_EQ(fixture.queue->counts().batches, 2);
  EXPECT_EQ(fixture.queue->counts().items, 2 * kBatch);
}

TEST(SampleQueueTest, ADrawThatFailsUsesUpNoNumberAndCountsNothing) {
  Fixture fixture(1);
  EXPECT_THAT(fixture.Next(), IsEmpty());
  EXPECT_EQ(fixture.queue->batch_number(), 0);
  EXPECT_EQ(fixture.queue->counts().batches, 0);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  Fixture other(0);
  RILL_ASSERT_OK(other.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_EQ(fixture.Next(), other.Next());
}

// Three batches were drawn of eight rows; then another buffer clears the
// storage and writes two. Batches of rows that are gone are drawn anew.
TEST(SampleQueueTest, RowsThatSomebodyClearedAreDrawnAnew) {
  Fixture fixture(2);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kBatch));
  RILL_ASSERT_OK(fixture.storage->Clear());
  // The write may wait until those batches are given up.
  std::thread writer(
      [&] { RILL_EXPECT_OK(fixture.storage->Extend(NumberedSteps(1, 2))); });
  PlacedBatch batch;
  const absl::Status first = fixture.queue->Take(kBatch, &batch);
  EXPECT_TRUE(first.ok() || absl::IsFailedPrecondition(first)) << first;
  writer.join();
  for (int i = 0; i < 4; ++i) {
    const std::vector<int64_t> slots = fixture.Next();
    ASSERT_THAT(slots, SizeIs(kBatch));
    for (const int64_t slot : slots) EXPECT_LT(slot, 2);
  }
}

// A status is no sign that rows are gone: nobody cleared them.
TEST(SampleQueueTest, AnErrorIsItsBatchsWhateverItsCode) {
  int64_t calls = 0;
  Fixture fixture(1, [&calls](TensorDict*) {
    return ++calls == 2 ? absl::OutOfRangeError("injected") : absl::OkStatus();
  });
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kBatch));
  PlacedBatch batch;
  EXPECT_THAT(fixture.queue->Take(kBatch, &batch),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(fixture.Next(), SizeIs(kBatch));
  EXPECT_EQ(fixture.queue->counts().batches, 2);
}

TEST(SampleQueueTest, WithoutPrefetchTheCallersMemoryIsUsedAgain) {
  Fixture fixture(0);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  PlacedBatch batch;
  RILL_ASSERT_OK(fixture.queue->Take(kBatch, &batch));
  const int64_t* const memory = batch.rows.Get("action")->data<int64_t>();
  RILL_ASSERT_OK(fixture.queue->Take(kBatch, &batch));
  EXPECT_EQ(batch.rows.Get("action")->data<int64_t>(), memory);
}

TEST(SampleQueueTest, ForgottenBatchesAreNotHandedOut) {
  Fixture fixture(2);
  fixture.queue->StartWorkers(1);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kBatch));
  fixture.queue->AwaitMade();
  fixture.queue->Forget();
  EXPECT_EQ(fixture.queue->counts().ahead, 0);
  EXPECT_THAT(fixture.Next(), SizeIs(kBatch));
  EXPECT_EQ(fixture.queue->batch_number(), 6);
}

TEST(SampleQueueTest, BatchesAheadGoOnInAnotherQueue) {
  Fixture fixture(2);
  fixture.queue->StartWorkers(2);
  RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(fixture.Next(), SizeIs(kBatch));
  fixture.queue->AwaitMade();
  RILL_ASSERT_OK_AND_ASSIGN(std::vector<SampleQueue::Made> ahead,
                            fixture.queue->SaveAhead());
  ASSERT_THAT(ahead, SizeIs(2));
  Fixture other(2);
  RILL_ASSERT_OK(other.storage->Extend(NumberedSteps(1, 8)));
  other.queue->SetBatchNumber(3);
  RILL_ASSERT_OK(other.queue->LoadAhead(std::move(ahead)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(other.Next(), fixture.Next()) << i;
}

}  // namespace
}  // namespace rill::replay_internal
