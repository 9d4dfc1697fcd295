// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/transform_stage.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/barrier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/episodes/multi_step.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill::replay_internal {
namespace {

using ::testing::ElementsAre;

absl::Status Done() { return absl::OkStatus(); }

absl::StatusOr<std::unique_ptr<TransformStage>> StageOf(
    std::unique_ptr<BatchTransform> transform) {
  TransformStage::Options options;
  options.sample_spec = [](const TensorDictSpec& rows) { return rows; };
  if (transform != nullptr) options.transforms.push_back(std::move(transform));
  return TransformStage::Create(std::move(options));
}

std::unique_ptr<BatchTransform> Refuses() {
  return *FunctionTransform::Create(
      {.name = "Refuses",
       .forward = [](TensorDict*) { return absl::OkStatus(); },
       .forward_spec =
           [](const TensorDictSpec&) -> absl::StatusOr<TensorDictSpec> {
         return absl::InvalidArgumentError("none will do");
       }});
}

int64_t Rows(const TransformStage& stage) {
  return *stage.SaveState()->Get("0/rows")->Item<int64_t>();
}

TEST(TransformStageTest, AnEmptyOneEndsBatchesInAnyOrder) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(nullptr));
  EXPECT_TRUE(stage->is_empty());
  TensorDict batch = NumberedSteps(1, 4);
  RILL_EXPECT_OK(stage->Forward(7, &batch, Done));
  EXPECT_EQ(
      stage->Forward(3, &batch, [] { return absl::DataLossError("x"); }).code(),
      absl::StatusCode::kDataLoss);
  stage->Skip(9);
}

TEST(TransformStageTest, ABatchThatCannotEndHasTaughtNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(MakeFakeRowCounter()));
  TensorDict batch = NumberedSteps(1, 4);
  RILL_ASSERT_OK(stage->Forward(0, &batch, Done));
  EXPECT_EQ(stage
                ->Forward(1, &batch,
                          [] { return absl::ResourceExhaustedError("full"); })
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Rows(*stage), 4);
  stage->Skip(2);
  RILL_EXPECT_OK(stage->Forward(3, &batch, Done));
  EXPECT_EQ(Rows(*stage), 8);
}

TEST(TransformStageTest, OriginsThatATransformDropsComeBack) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto drop, FunctionTransform::Create({.forward = [](TensorDict* batch) {
        return batch->Delete("index");
      }}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(std::move(drop)));
  TensorDict batch({3});
  RILL_ASSERT_OK(batch.Set("index", *Tensor::From<int64_t>({5, 6, 7}, {3})));
  RILL_ASSERT_OK(stage->Forward(0, &batch, Done));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor index, batch.Get("index"));
  EXPECT_THAT(*index.Flat<int64_t>(), ElementsAre(5, 6, 7));
}

TEST(TransformStageTest, AWriteThatFailedHasTaughtNothingUnlessOthersWentOn) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(MakeFakeWriteCounter()));
  TensorDict rows = NumberedSteps(1, 4);
  RILL_ASSERT_OK_AND_ASSIGN(const auto first, stage->Inverse(0, &rows));
  EXPECT_EQ(Rows(*stage), 4);
  stage->TakeBack(first);
  EXPECT_EQ(Rows(*stage), 0);
  RILL_ASSERT_OK_AND_ASSIGN(const auto second, stage->Inverse(0, &rows));
  RILL_ASSERT_OK(stage->Inverse(0, &rows).status());
  stage->TakeBack(second);
  EXPECT_EQ(Rows(*stage), 8);
}

TEST(TransformStageTest, RowsAreCheckedOnceTheyAreTheStorages) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(Refuses()));
  RILL_EXPECT_OK(stage->CheckRows(TensorDictSpec(), true));
  EXPECT_FALSE(stage->is_checked());
  const TensorDictSpec spec = TensorDictSpec::Of(NumberedSteps(1, 4));
  EXPECT_THAT(stage->CheckRows(spec, true), IsInvalidArgument("none will do"));
  EXPECT_FALSE(stage->is_checked());

  RILL_ASSERT_OK_AND_ASSIGN(const auto other, StageOf(MakeFakeRowCounter()));
  RILL_EXPECT_OK(other->CheckRows(spec, false));
  EXPECT_FALSE(other->is_checked());
  RILL_EXPECT_OK(other->CheckRows(spec, true));
  EXPECT_TRUE(other->is_checked());
}

TEST(TransformStageTest, InsertChangesAllOrNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(nullptr));
  const TensorDictSpec spec = TensorDictSpec::Of(NumberedSteps(1, 4));
  EXPECT_THAT(stage->Insert(1, MakeFakeRowCounter(), spec, 5),
              IsInvalidArgument("InsertTransform"));
  EXPECT_THAT(stage->Insert(std::nullopt, nullptr, spec, 5),
              IsInvalidArgument("InsertTransform"));
  EXPECT_THAT(stage->Insert(std::nullopt, Refuses(), spec, 5),
              IsInvalidArgument("none will do"));
  EXPECT_TRUE(stage->is_empty());
  EXPECT_THAT(stage->Names(), ElementsAre());

  RILL_ASSERT_OK(stage->Insert(std::nullopt, MakeFakeRowCounter(), spec, 5));
  EXPECT_THAT(stage->Names(), ElementsAre("FakeRowCounter"));
  EXPECT_TRUE(stage->is_checked());
  TensorDict batch = NumberedSteps(1, 4);
  RILL_EXPECT_OK(
      stage->Forward(5, &batch, Done));  // Nobody below it is awaited.
}

TEST(TransformStageTest, StatesGoAlongWhereOthersAreInsertedBeforeThem) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(MakeFakeRowCounter()));
  TensorDict batch = NumberedSteps(1, 4);
  RILL_ASSERT_OK(stage->Forward(0, &batch, Done));
  RILL_ASSERT_OK(stage->Insert(0, MakeFakeWriteCounter(), TensorDictSpec(), 1));
  EXPECT_EQ(Rows(*stage), 0);
  EXPECT_THAT(stage->SaveState()->Flat<int64_t>("1/rows"),
              IsOkAndHolds(ElementsAre(4)));
}

// Each waits for the other in the middle of its Forward.
TEST(TransformStageTest, BatchesGoThroughAtOnceWhereThereIsNoState) {
  absl::Barrier* barrier = new absl::Barrier(2);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto meet, FunctionTransform::Create({.forward = [&](TensorDict*) {
        if (barrier->Block()) {
          delete barrier;
        }
        return absl::OkStatus();
      }}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(std::move(meet)));
  std::vector<std::thread> threads;
  for (const uint64_t number : {1, 0}) {
    threads.emplace_back([&, number] {
      TensorDict batch = NumberedSteps(1, 4);
      RILL_EXPECT_OK(stage->Forward(number, &batch, Done));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TransformStageTest, AStateGoesOnInAnother) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(MakeFakeRowCounter()));
  TensorDict batch = NumberedSteps(1, 4);
  RILL_ASSERT_OK(stage->Forward(0, &batch, Done));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, stage->SaveState());
  EXPECT_EQ(state.GetNonTensor("type")->json, R"("TransformStage")");
  RILL_ASSERT_OK_AND_ASSIGN(const auto other, StageOf(MakeFakeRowCounter()));
  RILL_ASSERT_OK(other->LoadState(state, 8));
  RILL_ASSERT_OK(other->Forward(8, &batch, Done));
  EXPECT_EQ(Rows(*other), 8);

  RILL_ASSERT_OK_AND_ASSIGN(const auto plain, StageOf(nullptr));
  EXPECT_TRUE(plain->SaveState()->empty());
  EXPECT_THAT(plain->LoadState(state, 8), IsFailedPrecondition());
}

// One count for all lanes, as before each lane had its own.
TEST(TransformStageTest, AnOlderStateOfMultiStepGoesOn) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(
      spec.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSERT_OK(spec.Set("next/done", LeafSpec::Binary({1})));
  const auto make = [&] {
    return StageOf(*MultiStep::Create(
        {.n_steps = 3, .gamma = 1, .rows = spec, .lanes = 2}));
  };
  const auto steps = [](const std::vector<float>& rewards) {
    const Shape shape = {2, static_cast<int64_t>(rewards.size()) / 2, 1};
    TensorDict batch(shape.Prefix(2));
    RILL_EXPECT_OK(
        batch.Set("next/reward", *Tensor::From<float>(rewards, shape)));
    RILL_EXPECT_OK(batch.Set("next/done", *Tensor::Zeros(DType::kBool, shape)));
    return batch;
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, make());
  TensorDict rows = steps({1, 2, 10, 20});
  RILL_ASSERT_OK(stage->Inverse(0, &rows).status());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, stage->SaveState());
  EXPECT_THAT(state.Flat<int64_t>("0/held"), IsOkAndHolds(ElementsAre(2, 2)));
  RILL_ASSERT_OK(state.Set("0/held", *Tensor::From<int64_t>({2}, {})));
  RILL_ASSERT_OK_AND_ASSIGN(const auto other, make());
  RILL_ASSERT_OK(other->LoadState(state, 0));
  rows = steps({4, 40});
  RILL_ASSERT_OK(other->Inverse(0, &rows).status());
  EXPECT_THAT(rows.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(7, 70)));
}

TEST(TransformStageTest, AClearIsForTransformsThatHoldRows) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, StageOf(MakeFakeWriteCounter()));
  TensorDict rows = NumberedSteps(1, 4);
  RILL_ASSERT_OK(stage->Inverse(0, &rows).status());
  RILL_ASSERT_OK(stage->Clear());
  EXPECT_EQ(Rows(*stage), 4);
}

}  // namespace
}  // namespace rill::replay_internal
