// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/parts/write_path.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/sampling/transform_stage.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill::replay_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::unique_ptr<BatchTransform> Inverse(FunctionTransform::Function function) {
  return *FunctionTransform::Create({.inverse = std::move(function)});
}

// A path over 8 slots of one lane, and what it needs.
struct Fixture {
  explicit Fixture(std::unique_ptr<BatchTransform> transform = nullptr,
                   std::shared_ptr<RateLimiter> limiter = nullptr) {
    TransformStage::Options options;
    options.sample_spec = [](const TensorDictSpec& rows) { return rows; };
    if (transform != nullptr) {
      options.transforms.push_back(std::move(transform));
    }
    transforms = *TransformStage::Create(std::move(options));
    path = *WritePath::Create({.storage = storage,
                               .writer = MakeRoundRobinWriter(),
                               .sampler = sampler.get(),
                               .transforms = transforms.get(),
                               .drawn_rows = &drawn_rows,
                               .rate_limiter = std::move(limiter),
                               .rate_limit_timeout = absl::ZeroDuration()});
  }

  std::shared_ptr<Storage> storage = MakeStorage(8);
  std::unique_ptr<Sampler> sampler = MakeUniformSampler();
  DrawnRows drawn_rows;
  std::unique_ptr<TransformStage> transforms;
  std::unique_ptr<WritePath> path;
};

TEST(WritePathTest, RowsReachTheStorageTheSamplerAndTheCounts) {
  Fixture fixture;
  const int64_t events = fixture.path->events();
  std::vector<Draw> rows;
  RILL_ASSERT_OK(fixture.path->Extend(NumberedSteps(1, 3), {}, 0, &rows));
  EXPECT_EQ(fixture.storage->size(), 3);
  EXPECT_EQ(fixture.path->rows_written(), 3);
  EXPECT_GT(fixture.path->events(), events);
  EXPECT_THAT(rows, SizeIs(3));
  SamplePlan plan;
  RILL_EXPECT_OK(fixture.sampler->Plan({.batch_size = 4}, &plan));
}

TEST(WritePathTest, ALongerBatchThanItsLaneCountsWhatStays) {
  Fixture fixture;
  RILL_ASSERT_OK(fixture.path->Extend(NumberedSteps(1, 11), {}, 0));
  EXPECT_EQ(fixture.storage->size(), 8);
}

TEST(WritePathTest, ARefusedBatchChangesNothing) {
  int64_t inverses = 0;
  Fixture fixture(Inverse([&inverses](TensorDict*) {
    ++inverses;
    return absl::OkStatus();
  }));
  RILL_ASSERT_OK(fixture.path->Extend(NumberedSteps(1, 3), {}, 0));
  TensorDict other({1, 3});
  RILL_ASSERT_OK(other.Set("other", *Tensor::Zeros(DType::kInt64, {1, 3})));
  std::vector<Draw> rows = {{.slot = 7}};
  EXPECT_FALSE(fixture.path->Extend(other, {}, 0, &rows).ok());
  EXPECT_THAT(rows, IsEmpty());
  EXPECT_EQ(fixture.path->rows_written(), 3);
  EXPECT_EQ(fixture.storage->size(), 3);
  EXPECT_EQ(inverses, 2);
  RILL_ASSERT_OK(fixture.path->Extend(NumberedSteps(1, 3, 3), {}, 0));
  EXPECT_EQ(fixture.storage->size(), 6);
}

TEST(WritePathTest, ARefusedBatchTeachesTheTransformsNothing) {
  Fixture fixture(MakeFakeWriteCounter());
  RILL_ASSERT_OK(fixture.path->Extend(NumberedSteps(1, 3), {}, 0));
  TensorDict other({1, 3});
  RILL_ASSERT_OK(other.Set("other", *Tensor::Zeros(DType::kInt64, {1, 3})));
  EXPECT_FALSE(fixture.path->Extend(other, {}, 0).ok());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state,
                            fixture.transforms->SaveState());
  EXPECT_EQ(*state.Get("0/rows")->Item<int64_t>(), 3);
}

TEST(WritePathTest, AnInverseThatFailsWritesNothing) {
  bool fails = true;
  Fixture fixture(Inverse([&fails](TensorDict*) {
    return fails ? absl::DataLossError("inverse") : absl::OkStatus();
  }));
  EXPECT_THAT(fixture.path->Extend(NumberedSteps(1, 3), {}, 0), IsDataLoss());
  EXPECT_EQ(fixture.storage->size(), 0);
  fails = false;
  RILL_EXPECT_OK(fixture.path->Extend(NumberedSteps(1, 3), {}, 0));
}

TEST(WritePathTest, ThePermitIsTheLimiters) {
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<RateLimiter> limiter,
                            RateLimiter::Create(RateLimiter::Queue(4)));
  Fixture fixture(nullptr, limiter);
  RILL_ASSERT_OK_AND_ASSIGN(auto permit, fixture.path->AwaitInsert(4));
  permit->Commit();
  EXPECT_THAT(fixture.path->AwaitInsert(1), IsDeadlineExceeded());
  RILL_EXPECT_OK(fixture.path->AwaitInsert(0).status());
  RILL_EXPECT_OK(fixture.path->AwaitSample(4).status());
  RILL_ASSERT_OK(fixture.path->Clear());
  EXPECT_EQ(limiter->GetStats().done, RateLimiter::Counts());
}

TEST(WritePathTest, WithoutALimiterNobodyWaits) {
  Fixture fixture;
  RILL_ASSERT_OK_AND_ASSIGN(const auto permit, fixture.path->AwaitSample(1000));
  EXPECT_FALSE(permit.has_value());
}

TEST(WritePathTest, APatchReachesOnlyRowsThatAreStillThere) {
  Fixture fixture;
  std::vector<Draw> rows;
  RILL_ASSERT_OK(fixture.path->Extend(NumberedSteps(1, 2), {}, 0, &rows));
  TensorDict patch({2});
  RILL_ASSERT_OK(patch.Set(
      "index", *Tensor::From<int64_t>({rows[0].slot, rows[1].slot}, {2})));
  RILL_ASSERT_OK(
      patch.Set("index_generation",
                *Tensor::From<int64_t>(
                    {rows[0].generation, rows[1].generation + 1}, {2})));
  RILL_ASSERT_OK(patch.Set("action", *Tensor::From<int64_t>({70, 71}, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(const PatchResult result,
                            fixture.path->Patch(patch, {}));
  EXPECT_THAT(result.updated, ElementsAre(1, 0));
  TensorDict stored;
  RILL_ASSERT_OK(fixture.storage->ReadLeaves({rows[0].slot, rows[1].slot},
                                             {"action"}, &stored));
  EXPECT_THAT(*stored.Get("action")->Flat<int64_t>(), ElementsAre(70, 1));
}

TEST(WritePathTest, ItLeavesTheStorageToOthers) {
  Fixture fixture;
  fixture.path.reset();
  RILL_EXPECT_OK(fixture.storage->Extend(NumberedSteps(1, 3)));
}

}  // namespace
}  // namespace rill::replay_internal
