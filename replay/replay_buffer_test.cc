// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/replay_buffer.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/log_severity.h"
#include "absl/log/scoped_mock_log.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

std::unique_ptr<ReplayBuffer> MakeBuffer(std::shared_ptr<Storage> storage,
                                         uint64_t seed = 0) {
  return *ReplayBuffer::Create({.storage = std::move(storage),
                                .sampler = MakeUniformSampler(),
                                .batch_size = 16,
                                .seed = seed});
}

std::unique_ptr<ReplayBuffer> MakePrioritizedBuffer(
    std::shared_ptr<Storage> storage) {
  return *ReplayBuffer::Create(
      {.storage = std::move(storage),
       .sampler = MakeFakePrioritizedSampler({.alpha = 1, .beta = 1}),
       .batch_size = 16});
}

absl::StatusOr<TensorDict> RunExample(const TensorDict& steps) {
  RILL_ASSIGN_OR_RETURN(auto storage, DenseStorage::Create({.capacity = 1000}));
  RILL_ASSIGN_OR_RETURN(auto buffer,
                        ReplayBuffer::Create({.storage = std::move(storage),
                                              .sampler = MakeUniformSampler(),
                                              .batch_size = 32}));
  RILL_RETURN_IF_ERROR(buffer->Extend(steps).status());
  RILL_ASSIGN_OR_RETURN(TensorDict batch, buffer->Sample());
  return batch;
}

TEST(ReplayBufferTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            RunExample(NumberedSteps(1, 100)));
  EXPECT_EQ(batch.batch_shape(), Shape({32}));
}

// --- What a sample is --------------------------------------------------------

TEST(ReplayBufferTest, SampleHoldsRowsAndWhereTheyLie) {
  auto buffer = MakeBuffer(MakeStorage(/*capacity=*/20, /*lanes=*/2));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 13)));
  EXPECT_EQ(buffer->size(), 20);
  EXPECT_EQ(buffer->capacity(), 20);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  EXPECT_EQ(batch.batch_shape(), Shape({16}));
  EXPECT_THAT(batch.LeafKeys(),
              UnorderedElementsAre("observation", "action", "next/reward",
                                   "next/done", "index", "index_generation"));
  ExpectWholeSteps(batch, /*lane_capacity=*/10);
  RILL_ASSERT_OK_AND_ASSIGN(auto index, batch.Flat<int64_t>("index"));
  RILL_ASSERT_OK_AND_ASSIGN(auto actions, batch.Flat<int64_t>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(auto generations,
                            batch.Flat<int64_t>("index_generation"));
  for (size_t i = 0; i < index.size(); ++i) {
    // A batch longer than a lane leaves its last rows, written once each.
    EXPECT_EQ(generations[i], 0);
    EXPECT_GE(actions[i] % 1000, 3);
  }
}

TEST(ReplayBufferTest, SampleOfAWeightedSamplerHasWeights) {
  auto buffer = MakePrioritizedBuffer(MakeStorage(10));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, buffer->Sample());
  EXPECT_THAT(batch.Flat<float>("priority_weight"), IsOkAndHolds(Each(1.0f)));
  RILL_ASSERT_OK(buffer->UpdatePriorities(batch, std::vector<float>(16, 2.0f)));
  RILL_ASSERT_OK_AND_ASSIGN(batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(auto weights, batch.Flat<float>("priority_weight"));
  EXPECT_EQ(batch.Find("priority_weight")->shape(), Shape({16}));
  EXPECT_THAT(weights, Each(::testing::AnyOf(0.5f, 1.0f)));
}

TEST(ReplayBufferTest, SampleIntoReusesTheTensors) {
  auto buffer = MakeBuffer(MakeStorage(10));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  TensorDict batch;
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  const std::byte* observation = batch.Find("observation")->raw_data();
  const std::byte* index = batch.Find("index")->raw_data();
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  EXPECT_EQ(batch.Find("observation")->raw_data(), observation);
  EXPECT_EQ(batch.Find("index")->raw_data(), index);
  ExpectWholeSteps(batch, 10);
}

TEST(ReplayBufferTest, SampleIntoTakesANumberToo) {
  auto buffer = MakeBuffer(MakeStorage(10), /*seed=*/3);
  auto twin = MakeBuffer(MakeStorage(10), /*seed=*/3);
  for (auto* each : {buffer.get(), twin.get()}) {
    RILL_ASSERT_OK(each->Extend(NumberedSteps(1, 10)));
  }
  TensorDict batch;
  RILL_ASSERT_OK(buffer->SampleInto(5, &batch));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, twin->Sample(5));
  RILL_EXPECT_OK(batch.CheckEqual(want));
  EXPECT_THAT(buffer->SampleInto(5, nullptr), IsInvalidArgument("null"));
}

TEST(ReplayBufferTest, SamplesDoNotShareBytes) {
  auto buffer = MakeBuffer(MakeStorage(10));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict first, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, first.Clone());
  RILL_ASSERT_OK(buffer->Sample());
  TensorDict other;
  RILL_ASSERT_OK(buffer->SampleInto(&other));
  RILL_ASSERT_OK(buffer->Sample());
  RILL_EXPECT_OK(first.CheckEqual(copy));
}

// U6 is the number of one of TorchRL's behaviours.
TEST(ReplayBufferTest, U6_BatchSizeOfTheCallWinsWithOneWarning) {
  for (const bool has_batch_size : {true, false}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer,
        ReplayBuffer::Create({.storage = MakeStorage(10),
                              .sampler = MakeUniformSampler(),
                              .batch_size = has_batch_size ? 16 : 0}));
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
    absl::ScopedMockLog log(absl::MockLogDefault::kDisallowUnexpected);
    EXPECT_CALL(log, Log(absl::LogSeverity::kWarning, _,
                         HasSubstr("batch size: got 3 where "
                                   "Options::batch_size is 16")))
        .Times(has_batch_size ? 1 : 0);
    log.StartCapturingLogs();
    TensorDict batch;
    RILL_EXPECT_OK(buffer->SampleInto(16, &batch));
    EXPECT_THAT(buffer->Sample(0), IsInvalidArgument());
    for (const int64_t size : {3, 4, 3}) {
      RILL_EXPECT_OK(buffer->SampleInto(size, &batch));
      EXPECT_EQ(batch.batch_shape(), Shape({size}));
    }
  }
}

TEST(ReplayBufferTest, U6_BatchSizeOfTheCallIsThatOfOneCall) {
  auto buffer = MakeBuffer(MakeStorage(10));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample(3));
  EXPECT_EQ(batch.batch_shape(), Shape({3}));
  for (int64_t bad : {int64_t{0}, int64_t{-5}, Sampler::kMaxBatchSize + 1,
                      std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(buffer->Sample(bad), IsInvalidArgument(std::to_string(bad)));
  }
  EXPECT_EQ(buffer->batch_number(), 1u);
  // The batch size was for that call only.
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict next, buffer->Sample());
  EXPECT_EQ(next.batch_shape(), Shape({16}));
}

TEST(ReplayBufferTest, SampleWithoutABatchSizeSaysWhatToDo) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = MakeStorage(10),
                                         .sampler = MakeUniformSampler()}));
  EXPECT_THAT(buffer->Sample(), IsFailedPrecondition("Sample(batch_size)"));
  EXPECT_THAT(buffer->SampleInto(nullptr), IsInvalidArgument("null"));
}

TEST(ReplayBufferTest, TooFewRowsUseUpNoBatchNumber) {
  auto buffer = MakeBuffer(MakeStorage(10), /*seed=*/4);
  auto twin = MakeBuffer(MakeStorage(10), /*seed=*/4);
  EXPECT_THAT(buffer->Sample(), IsFailedPrecondition());
  EXPECT_EQ(buffer->batch_number(), 0u);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK(twin->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, twin->Sample());
  RILL_EXPECT_OK(batch.CheckEqual(want));
}

// --- Writing -----------------------------------------------------------------

TEST(ReplayBufferTest, ExtendTakesTimeOrLanesAndTime) {
  auto buffer = MakeBuffer(MakeStorage(10));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict time,
                            NumberedSteps(1, 4).SelectDim(0, 0));
  RILL_ASSERT_OK_AND_ASSIGN(ExtendResult result, buffer->Extend(time));
  EXPECT_EQ(result.rows_written, 4);
  RILL_ASSERT_OK_AND_ASSIGN(result, buffer->Extend(NumberedSteps(1, 12, 4)));
  EXPECT_EQ(result.rows_written, 10);
  EXPECT_EQ(result.rows_dropped, 2);

  auto lanes = MakeBuffer(MakeStorage(10, /*lanes=*/2));
  EXPECT_THAT(lanes->Extend(time),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("[4]"),
                             HasSubstr("Options::lanes of the storage is 2"))));
  RILL_EXPECT_OK(lanes->Extend(NumberedSteps(1, 4), {.first_lane = 1}));
  EXPECT_EQ(lanes->size(), 4);
}

TEST(ReplayBufferTest, IsASink) {
  auto buffer = MakeBuffer(MakeStorage(10));
  Sink& sink = *buffer;
  RILL_EXPECT_OK(sink.Write(NumberedSteps(1, 4), {}));
  RILL_EXPECT_OK(sink.Flush());
  EXPECT_EQ(buffer->size(), 4);
}

TEST(ReplayBufferTest, WriteThatDoesNotFitChangesNothing) {
  auto buffer = MakeBuffer(MakeStorage(10), /*seed=*/2);
  auto twin = MakeBuffer(MakeStorage(10), /*seed=*/2);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 5)));
  RILL_ASSERT_OK(twin->Extend(NumberedSteps(1, 5)));
  TensorDict wrong = NumberedSteps(1, 5);
  RILL_ASSERT_OK(wrong.Delete("action"));
  EXPECT_THAT(buffer->Extend(wrong), IsInvalidArgument("action"));
  EXPECT_EQ(buffer->size(), 5);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, twin->Sample());
  RILL_EXPECT_OK(batch.CheckEqual(want));
}

TEST(ReplayBufferTest, MoreRowsThanCanBeCountedAreRefused) {
  auto buffer = MakeBuffer(MakeStorage(/*capacity=*/8, /*lanes=*/4));
  for (const TensorDict& batch :
       {TensorDict({INT64_MAX, 2}), TensorDict({2, INT64_MAX}),
        TensorDict({4, int64_t{1} << 62}),
        TensorDict({INT64_MAX, INT64_MAX})}) {
    EXPECT_THAT(buffer->Extend(batch), IsInvalidArgument());
  }
  EXPECT_EQ(buffer->size(), 0);
}

TEST(ReplayBufferTest, RowsMayNotHaveTheKeysOfASample) {
  auto buffer = MakeBuffer(MakeStorage(10));
  TensorDict steps = NumberedSteps(1, 5);
  RILL_ASSERT_OK(steps.Set("index", *Tensor::Zeros(DType::kInt64, {1, 5})));
  EXPECT_THAT(buffer->Extend(steps), IsInvalidArgument("\"index\""));
  EXPECT_EQ(buffer->size(), 0);
  RILL_ASSERT_OK(steps.Delete("index"));
  RILL_EXPECT_OK(buffer->Extend(steps));
}

// --- Reproducible ------------------------------------------------------------

TEST(ReplayBufferTest, SameSeedAndCallsGiveTheSameBatches) {
  auto a = MakeBuffer(MakeStorage(20, 2), /*seed=*/7);
  auto b = MakeBuffer(MakeStorage(20, 2), /*seed=*/7);
  auto c = MakeBuffer(MakeStorage(20, 2), /*seed=*/8);
  for (int64_t i = 0; i < 5; ++i) {
    for (auto* buffer : {a.get(), b.get(), c.get()}) {
      RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 7, 7 * i)));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict of_a, a->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict of_b, b->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict of_c, c->Sample());
    RILL_EXPECT_OK(of_a.CheckEqual(of_b));
    EXPECT_FALSE(of_a.CheckEqual(of_c).ok());
  }
  EXPECT_EQ(a->batch_number(), 5u);
}

// --- Two on one storage ------------------------------------------------------

TEST(ReplayBufferTest, TwoBuffersOnOneStorageBothSeeEveryWrite) {
  auto storage = MakeStorage(12);
  auto first = MakeBuffer(storage);
  auto second = MakePrioritizedBuffer(storage);
  RILL_ASSERT_OK(first->Extend(NumberedSteps(1, 8)));
  RILL_ASSERT_OK(second->Extend(NumberedSteps(1, 8, 8)));
  EXPECT_EQ(first->size(), 12);
  for (auto* buffer : {first.get(), second.get()}) {
    std::vector<int64_t> seen(16, 0);
    for (int i = 0; i < 20; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
      ExpectWholeSteps(batch, 12);
      RILL_ASSERT_OK_AND_ASSIGN(auto actions, batch.Flat<int64_t>("action"));
      for (int64_t action : actions) ++seen[static_cast<size_t>(action)];
    }
    EXPECT_THAT(std::vector<int64_t>(seen.begin(), seen.begin() + 4), Each(0));
    EXPECT_THAT(std::vector<int64_t>(seen.begin() + 4, seen.end()),
                Each(::testing::Gt(0)));
  }
}

TEST(ReplayBufferTest, BufferThatGoesLeavesTheStorageToOthers) {
  auto storage = MakeStorage(12);
  auto stays = MakeBuffer(storage);
  RILL_ASSERT_OK(MakeBuffer(storage)->Extend(NumberedSteps(1, 8)));
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 8, 8)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, stays->Sample());
  ExpectWholeSteps(batch, 12);
}

// --- Priorities --------------------------------------------------------------

TEST(ReplayBufferTest, PrioritiesReachTheSampler) {
  auto buffer = MakePrioritizedBuffer(MakeStorage(4));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  TensorDict rows({4});
  RILL_ASSERT_OK(rows.Set("index", *Tensor::From<int64_t>({0, 1, 2, 3}, {4})));
  RILL_ASSERT_OK(
      rows.Set("index_generation", *Tensor::Zeros(DType::kInt64, {4})));
  RILL_ASSERT_OK(buffer->UpdatePriorities(rows, {0, 0, 5, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  EXPECT_THAT(batch.Flat<int64_t>("action"), IsOkAndHolds(Each(2)));
  // All rows are new ones: the priorities are those of rows that are gone.
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4, 4)));
  RILL_ASSERT_OK(buffer->UpdatePriorities(rows, {0, 0, 5, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict later, buffer->Sample());
  EXPECT_THAT(later.Flat<int64_t>("action"),
              IsOkAndHolds(::testing::Not(Each(6))));
}

TEST(ReplayBufferTest, P2_OnePriorityIsThatOfAllRows) {
  auto buffer = MakePrioritizedBuffer(MakeStorage(5));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  TensorDict rows({4});
  RILL_ASSERT_OK(rows.Set("index", *Tensor::From<int64_t>({0, 1, 2, 3}, {4})));
  RILL_ASSERT_OK(
      rows.Set("index_generation", *Tensor::Zeros(DType::kInt64, {4})));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 1, 7)));
  RILL_ASSERT_OK(buffer->UpdatePriorities(rows, {0}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  EXPECT_THAT(batch.Flat<int64_t>("action"), IsOkAndHolds(Each(7)));
}

TEST(ReplayBufferTest, BadPriorityArgumentsAreNamed) {
  auto buffer = MakePrioritizedBuffer(MakeStorage(4));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, buffer->Sample(2));
  EXPECT_THAT(buffer->UpdatePriorities(batch, {1, 1, 1}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("got 3"), HasSubstr("2 draws"))));
  EXPECT_THAT(buffer->UpdatePriorities(
                  batch, {1, std::numeric_limits<float>::quiet_NaN()}),
              IsInvalidArgument("finite"));
  RILL_ASSERT_OK(batch.Set("index", *Tensor::Zeros(DType::kInt32, {2})));
  EXPECT_THAT(buffer->UpdatePriorities(batch, {1, 1}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("int32"), HasSubstr("want int64"))));
  RILL_ASSERT_OK(batch.Set("index", *Tensor::Zeros(DType::kInt64, {2, 1})));
  RILL_EXPECT_OK(buffer->UpdatePriorities(batch, {1, 1}));
  RILL_ASSERT_OK(batch.Set("index", *Tensor::Zeros(DType::kInt64, {2, 2})));
  EXPECT_THAT(
      buffer->UpdatePriorities(batch, {1, 1, 1, 1}),
      StatusIs(kInvalidArgument, AllOf(HasSubstr("[2]"), HasSubstr("[2, 2]"))));
  RILL_ASSERT_OK(batch.Delete("index_generation"));
  EXPECT_THAT(buffer->UpdatePriorities(batch, {1, 1}),
              IsNotFound("index_generation"));
}

// --- Options -----------------------------------------------------------------

TEST(ReplayBufferTest, OptionsThatDoNotWorkAreNamed) {
  EXPECT_THAT(ReplayBuffer::Create({.sampler = MakeUniformSampler()}),
              IsInvalidArgument("storage: got null"));
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(4)}),
              IsInvalidArgument("sampler: got null"));
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(4),
                                    .sampler = MakeUniformSampler(),
                                    .batch_size = -1}),
              IsInvalidArgument("batch_size: got -1"));
  std::vector<std::unique_ptr<BatchTransform>> transforms(2);
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(4),
                                    .sampler = MakeUniformSampler(),
                                    .transforms = std::move(transforms)}),
              IsInvalidArgument("transforms[0]"));
}

}  // namespace
}  // namespace rill
