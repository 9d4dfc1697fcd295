// SPDX-License-Identifier: Apache-2.0
// Samplers that go through the rows, in a buffer. A name like U7 is the number
// of the TorchRL behaviour that a test repeats.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/units/slice_sampler_without_replacement.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::unique_ptr<ReplayBuffer> Over(std::unique_ptr<Sampler> sampler,
                                   int64_t batch_size, int64_t prefetch = 0) {
  return *ReplayBuffer::Create({.storage = MakeStorage(10),
                                .sampler = std::move(sampler),
                                .batch_size = batch_size,
                                .prefetch = prefetch});
}

std::vector<int64_t> SlotsOfNext(ReplayBuffer& buffer) {
  const auto batch = buffer.Sample();
  RILL_EXPECT_OK(batch);
  if (!batch.ok()) return {};
  const int64_t* const index = batch->Find("index")->data<int64_t>();
  return {index, index + batch->batch_shape().num_elements()};
}

// The next batches, by threes, are an epoch of ten rows; appends their slots.
void TakeEpoch(ReplayBuffer& buffer, std::vector<int64_t>* seen) {
  for (const size_t size : {3, 3, 3, 1}) {
    const std::vector<int64_t> slots = SlotsOfNext(buffer);
    ASSERT_THAT(slots, SizeIs(size));
    seen->insert(seen->end(), slots.begin(), slots.end());
  }
  EXPECT_THAT(*seen, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// An epoch ends with its last row.
TEST(EpochsTest, U7_EveryLoopOverTheRowsIsAFullEpoch) {
  for (const int64_t prefetch : {0, 3}) {
    const auto buffer = Over(MakeSamplerWithoutReplacement(), 3, prefetch);
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> seen;
      ASSERT_NO_FATAL_FAILURE(TakeEpoch(*buffer, &seen));
    }
  }
}

// And the orders go on: it is not the first epoch once more.
TEST(EpochsTest, ClearingBeginsAnotherFullEpoch) {
  for (const int64_t prefetch : {0, 3}) {
    const auto buffer = Over(MakeSamplerWithoutReplacement(), 3, prefetch);
    std::vector<std::vector<int64_t>> epochs;
    for (int i = 0; i < 2; ++i) {
      RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
      ASSERT_NO_FATAL_FAILURE(TakeEpoch(*buffer, &epochs.emplace_back()));
      SlotsOfNext(*buffer);  // Of an epoch that is given up.
      RILL_ASSERT_OK(buffer->Clear());
    }
    EXPECT_NE(epochs[0], epochs[1]);
  }
}

// --- Batches left ------------------------------------------------------------

// Samples until the epoch is over; says before each batch how many are left.
void ExpectEpochs(ReplayBuffer& buffer, int64_t batches) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int64_t left = batches; left > 0; --left) {
      ASSERT_THAT(buffer.BatchesLeft(), IsOkAndHolds(left)) << epoch;
      SlotsOfNext(buffer);
    }
  }
}

TEST(EpochsTest, BatchesLeftCountsDownTheEpochOfTheNextBatch) {
  for (const int64_t prefetch : {0, 1, 3, 9}) {
    SCOPED_TRACE(prefetch);
    const auto buffer = Over(MakeSamplerWithoutReplacement(), 3, prefetch);
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
    ASSERT_NO_FATAL_FAILURE(ExpectEpochs(*buffer, 4));
    const auto whole =
        Over(MakeSamplerWithoutReplacement({.drop_last = true}), 3, prefetch);
    RILL_ASSERT_OK(whole->Extend(NumberedSteps(1, 10)));
    ASSERT_NO_FATAL_FAILURE(ExpectEpochs(*whole, 3));
    const auto even = Over(MakeSamplerWithoutReplacement(), 5, prefetch);
    RILL_ASSERT_OK(even->Extend(NumberedSteps(1, 10)));
    ASSERT_NO_FATAL_FAILURE(ExpectEpochs(*even, 2));
  }
}

// Each of five episodes of two steps is drawn once an epoch, two a batch.
TEST(EpochsTest, BatchesLeftOfSlices) {
  for (const int64_t prefetch : {0, 4}) {
    const auto buffer =
        Over(*MakeSliceSamplerWithoutReplacement({.length = 2}), 4, prefetch);
    for (int64_t i = 0; i < 5; ++i) {
      RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 2, 2 * i)));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectEpochs(*buffer, 3));
  }
}

TEST(EpochsTest, BatchesLeftWhereTheEpochStartsAnew) {
  const auto buffer = Over(MakeSamplerWithoutReplacement(), 3);
  EXPECT_THAT(buffer->BatchesLeft(), IsOkAndHolds(0));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 5)));
  SlotsOfNext(*buffer);
  EXPECT_THAT(buffer->BatchesLeft(), IsOkAndHolds(1));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 5, 5)));  // It has grown.
  EXPECT_THAT(buffer->BatchesLeft(), IsOkAndHolds(4));
  SlotsOfNext(*buffer);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 5, 10)));  // Written over.
  EXPECT_THAT(buffer->BatchesLeft(), IsOkAndHolds(3));
  RILL_ASSERT_OK(buffer->Clear());
  EXPECT_THAT(buffer->BatchesLeft(), IsOkAndHolds(0));
}

TEST(EpochsTest, OpenedBufferHasAsManyBatchesLeft) {
  const std::string directory = JoinPath(::testing::TempDir(), "epochs");
  const auto saved = Over(MakeSamplerWithoutReplacement(), 3, /*prefetch=*/3);
  RILL_ASSERT_OK(saved->Extend(NumberedSteps(1, 10)));
  for (int batch = 0; batch < 6; ++batch) {
    RILL_ASSERT_OK(saved->Save(directory));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto opened,
        ReplayBuffer::Open(directory,
                           {.storage = MakeStorage(10),
                            .sampler = MakeSamplerWithoutReplacement(),
                            .batch_size = 3,
                            .prefetch = 3}));
    for (int next = 0; next < 6; ++next) {
      // As the saved one has `next` batches later.
      EXPECT_THAT(opened->BatchesLeft(), IsOkAndHolds(4 - (batch + next) % 4));
      SlotsOfNext(*opened);
    }
    SlotsOfNext(*saved);
  }
}

TEST(EpochsTest, SamplerWithoutEpochsSaysSo) {
  const auto buffer = Over(MakeUniformSampler(), 3);
  EXPECT_THAT(buffer->BatchesLeft(), IsFailedPrecondition("UniformSampler"));
}

// TorchRL's is refused at construction. Here a call may say how many it wants.
TEST(EpochsTest, U4_DropLastWithoutABatchSizeWantsOneOfTheCall) {
  const auto buffer =
      Over(MakeSamplerWithoutReplacement({.drop_last = true}), 0);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  EXPECT_THAT(buffer->Sample(),
              IsFailedPrecondition("batch_size: got 0, want > 0"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample(4));
  EXPECT_EQ(batch.batch_shape(), Shape({4}));
}

// Unlike TorchRL's, rows that are used up stay in the storage, which goes on at
// its cursor.
TEST(EpochsTest, U8_RowsAreUsedUpAndStayStored) {
  const auto buffer = Over(*MakeConsumingSampler({.max_times_sampled = 1}), 4);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 6)));
  std::vector<int64_t> seen = SlotsOfNext(*buffer);
  ASSERT_THAT(seen, SizeIs(4));
  for (const int64_t slot : SlotsOfNext(*buffer)) seen.push_back(slot);
  EXPECT_THAT(seen, UnorderedElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(buffer->Sample(), IsFailedPrecondition());
  EXPECT_EQ(buffer->size(), 6);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 2)));
  EXPECT_EQ(buffer->size(), 8);
  EXPECT_THAT(SlotsOfNext(*buffer), UnorderedElementsAre(6, 7));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  EXPECT_THAT(SlotsOfNext(*buffer), UnorderedElementsAre(8, 9, 0, 1));
}

}  // namespace
}  // namespace rill
