// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/hindsight_relabel.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/unit_transform_conformance.h"
#include "rill/transforms/testing/fake_units.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

bool SameRow(const Tensor& a, const Tensor& b, int64_t row) {
  const size_t width = static_cast<size_t>(a.size_bytes() / a.shape()[0]);
  const size_t at = static_cast<size_t>(row) * width;
  return std::memcmp(a.raw_data() + at, b.raw_data() + at, width) == 0;
}

absl::StatusOr<Tensor> MinusOneUnlessEqual(const Tensor& achieved,
                                           const Tensor& desired) {
  const int64_t rows = achieved.shape()[0];
  Tensor rewards = *Tensor::Empty(DType::kFloat32, {rows, 1});
  for (int64_t i = 0; i < rows; ++i) {
    rewards.data<float>()[i] = SameRow(achieved, desired, i) ? 0.f : -1.f;
  }
  return rewards;
}

absl::StatusOr<Tensor> Equal(const Tensor& achieved, const Tensor& desired) {
  const int64_t rows = achieved.shape()[0];
  Tensor flags = *Tensor::Empty(DType::kBool, {rows, 1});
  for (int64_t i = 0; i < rows; ++i) {
    flags.data<bool>()[i] = SameRow(achieved, desired, i);
  }
  return flags;
}

std::unique_ptr<UnitTransform> Make(const HindsightRelabel::Options& options) {
  return *HindsightRelabel::Create(options);
}

// Achieves goals 1 .. 4, wants 9; truncated at the last step.
FakeSampleReader FourSteps() {
  const auto goals = [](float first, float step) {
    Tensor tensor = *Tensor::Empty(DType::kFloat32, {4, 1});
    for (int i = 0; i < 4; ++i) {
      tensor.data<float>()[i] = first + step * static_cast<float>(i);
    }
    return tensor;
  };
  const Tensor end = *Tensor::From<bool>({false, false, false, true}, {4, 1});
  TensorDict store({4});
  RILL_EXPECT_OK(store.Set("desired_goal", goals(9, 0)));
  RILL_EXPECT_OK(store.Set("next/desired_goal", goals(9, 0)));
  RILL_EXPECT_OK(store.Set("next/achieved_goal", goals(1, 1)));
  RILL_EXPECT_OK(store.Set("next/reward", goals(-5, 0)));
  RILL_EXPECT_OK(
      store.Set("next/terminated", *Tensor::Zeros(DType::kBool, {4, 1})));
  RILL_EXPECT_OK(store.Set("next/truncated", end));
  RILL_EXPECT_OK(store.Set("next/done", end));
  return FakeSampleReader(TensorDictSpec::Of(store), store);
}

const FakeUnits kFourUnits({false, false, false, true});

TEST(HindsightRelabelTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto relabel, HindsightRelabel::Create({.reward = MinusOneUnlessEqual}));
  EXPECT_EQ(relabel->name(), "HindsightRelabel");
}

TEST(HindsightRelabelTest, RelabelledRowsHaveTheirGoalAndItsReward) {
  const auto relabel = Make({.reward = MinusOneUnlessEqual});
  // The second keeps its own, the third gets what it achieves itself.
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      FourSteps().Read(*relabel,
                       kFourUnits.Goals({0, 1, 2, 3}, {3, -1, 2, 3})));
  for (const char* key : {"desired_goal", "next/desired_goal"}) {
    EXPECT_THAT(batch.Get(key),
                IsOkAndHolds(TensorElementsAre<float>(4, 9, 3, 4)));
  }
  EXPECT_THAT(batch.Get("next/achieved_goal"),
              IsOkAndHolds(TensorElementsAre<float>(1, 2, 3, 4)));
  EXPECT_THAT(batch.Get("next/reward"),
              IsOkAndHolds(TensorElementsAre<float>(-1, -5, 0, 0)));
  EXPECT_THAT(
      batch.Get("next/terminated"),
      IsOkAndHolds(TensorElementsAre<bool>(false, false, false, false)));
}

TEST(HindsightRelabelTest, TerminatedAndDoneFollowTheNewGoalIfAsked) {
  const auto relabel =
      Make({.reward = MinusOneUnlessEqual, .terminated = Equal});
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      FourSteps().Read(*relabel, kFourUnits.Goals({0, 2, 3, 3}, {2, 2, 0, 3})));
  EXPECT_THAT(batch.Get("next/terminated"),
              IsOkAndHolds(TensorElementsAre<bool>(false, true, false, true)));
  EXPECT_THAT(batch.Get("next/truncated"),
              IsOkAndHolds(TensorElementsAre<bool>(false, false, true, true)));
  EXPECT_THAT(batch.Get("next/done"),
              IsOkAndHolds(TensorElementsAre<bool>(false, true, true, true)));
}

TEST(HindsightRelabelTest, FunctionsAreNotAskedWithoutRows) {
  const auto relabel = Make({.reward = [](const Tensor&, const Tensor&) {
    return absl::StatusOr<Tensor>(absl::InternalError("asked"));
  }});
  const FakeSampleReader reader = FourSteps();
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      reader.Read(*relabel, kFourUnits.Goals({0, 1, 2, 3}, {-1, -1, -1, -1})));
  RILL_EXPECT_OK(batch.CheckEqual(reader.store()));
}

TEST(HindsightRelabelTest, OfOtherRowsGoalsAloneAreRead) {
  const auto relabel = Make({.reward = MinusOneUnlessEqual});
  RILL_ASSERT_OK_AND_ASSIGN(const auto reads,
                            relabel->PlanReads(FourSteps().spec()));
  ASSERT_EQ(reads.context.size(), 1u);
  EXPECT_THAT(reads.context[0].apart, ElementsAre("next/achieved_goal"));
  EXPECT_THAT(reads.context[0].batch, ElementsAre());
}

// --- Against a plain oracle --------------------------------------------------

// Goals of few values, so that some are equal.
TensorDictSpec NestedGoals() {
  TensorDictSpec spec = TedSpec();
  const LeafSpec goal = LeafSpec::Categorical(2, DType::kInt16, {2, 1});
  RILL_EXPECT_OK(spec.Set("goals/wanted", goal));
  RILL_EXPECT_OK(spec.Set("next/goals/wanted", goal));
  RILL_EXPECT_OK(spec.Set("next/goals/got", goal));
  return spec;
}

HindsightRelabel::Options NestedOptions() {
  return {.achieved_key = "next/goals/got",
          .desired_key = "goals/wanted",
          .reward = MinusOneUnlessEqual,
          .terminated = Equal};
}

TEST(HindsightRelabelTest, AgreesWithALoopOverRandomPlans) {
  constexpr int64_t kRows = 100;
  const Rng rng(9, RngStream::kUser);
  TensorDict batch;
  for (uint64_t round = 0; round < 30; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict store,
                              NestedGoals().Random({kRows}, rng, round));
    std::vector<Slot> anchors;
    std::vector<Slot> goals;
    for (uint32_t i = 0; i < 40; ++i) {
      anchors.push_back(rng.UniformInt(round, i, kRows));
      goals.push_back(rng.UniformInt(round, 100 + i, 3) == 0
                          ? -1
                          : rng.UniformInt(round, 200 + i, kRows));
    }
    const FakeSampleReader reader(NestedGoals(), store);
    RILL_ASSERT_OK(reader.ReadInto(
        *Make(NestedOptions()),
        FakeUnits(std::vector<bool>(kRows)).Goals(anchors, goals), &batch));
    const auto stored = [&store](const char* key, Slot slot) {
      return *store.Find(key)->Index(slot);
    };
    for (size_t i = 0; i < anchors.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i);
      const auto got = [&](const char* key) {
        return *batch.Find(key)->Index(row);
      };
      Tensor wanted = stored("goals/wanted", anchors[i]);
      Tensor next_wanted = stored("next/goals/wanted", anchors[i]);
      float reward = *stored("next/reward", anchors[i]).Item<float>();
      bool terminated = *stored("next/terminated", anchors[i]).Item<bool>();
      bool done = *stored("next/done", anchors[i]).Item<bool>();
      if (goals[i] >= 0) {
        wanted = next_wanted = stored("next/goals/got", goals[i]);
        terminated = *wanted.BitEquals(stored("next/goals/got", anchors[i]));
        reward = terminated ? 0.f : -1.f;
        done = terminated || *stored("next/truncated", anchors[i]).Item<bool>();
      }
      ASSERT_THAT(got("goals/wanted"), BitEqualTo(wanted));
      ASSERT_THAT(got("next/goals/wanted"), BitEqualTo(next_wanted));
      ASSERT_EQ(*got("next/reward").Item<float>(), reward);
      ASSERT_EQ(*got("next/terminated").Item<bool>(), terminated);
      ASSERT_EQ(*got("next/done").Item<bool>(), done);
    }
  }
}

// --- Errors ------------------------------------------------------------------

TEST(HindsightRelabelTest, OptionsAreNamed) {
  EXPECT_THAT(HindsightRelabel::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("reward")));
  EXPECT_THAT(HindsightRelabel::Create(
                  {.desired_key = "", .reward = MinusOneUnlessEqual}),
              StatusIs(kInvalidArgument, HasSubstr("key")));
  EXPECT_THAT(HindsightRelabel::Create({.desired_key = "next/reward",
                                        .reward = MinusOneUnlessEqual}),
              StatusIs(kInvalidArgument, HasSubstr("twice")));
}

TEST(HindsightRelabelTest, GoalsOfTwoKindsAreRefused) {
  TensorDictSpec rows = FourSteps().spec();
  RILL_ASSERT_OK(
      rows.Set("next/desired_goal", LeafSpec::Unbounded(DType::kFloat32, {2})));
  EXPECT_THAT(Make({.reward = MinusOneUnlessEqual})->PlanReads(rows),
              StatusIs(kInvalidArgument, HasSubstr("next/desired_goal")));
}

TEST(HindsightRelabelTest, WhatTheFunctionMakesIsChecked) {
  const SamplePlan plan = kFourUnits.Goals({0, 1}, {3, 3});
  const auto read = [&plan](const HindsightRelabel::Function& reward) {
    return FourSteps().Read(*Make({.reward = reward}), plan);
  };
  EXPECT_THAT(read(Equal),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("reward"), HasSubstr("bool[2, 1]"),
                             HasSubstr("float32[2, 1]"))));
  EXPECT_THAT(read([](const Tensor&, const Tensor&) {
                return Tensor::Zeros(DType::kFloat32, {3, 1});
              }),
              StatusIs(kInvalidArgument, HasSubstr("float32[3, 1]")));
  EXPECT_THAT(read([](const Tensor&, const Tensor&) -> absl::StatusOr<Tensor> {
                RILL_ASSIGN_OR_RETURN(const Tensor zero,
                                      Tensor::Zeros(DType::kFloat32, {1}));
                return zero.Expand({2, 1});
              }),
              StatusIs(kInvalidArgument, HasSubstr("contiguous")));
  EXPECT_THAT(
      read([](const Tensor&, const Tensor&) {
        return absl::StatusOr<Tensor>(absl::UnavailableError("no simulator"));
      }),
      StatusIs(
          absl::StatusCode::kUnavailable,
          AllOf(HasSubstr("HindsightRelabel"), HasSubstr("no simulator"))));
}

TEST(HindsightRelabelTest, TwoGoalsForADrawAreRefused) {
  SamplePlan plan = kFourUnits.Goals({0, 1}, {3, 3});
  plan.context[0].segments = {1, 1};
  EXPECT_THAT(
      FourSteps().Read(*Make({.reward = MinusOneUnlessEqual}), plan),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("at most one a draw")));
}

UnitTransformUnderTest UnderTest() {
  return {.make = [] { return Make(NestedOptions()); },
          .rows = NestedGoals(),
          .plan =
              [](const std::vector<Slot>& anchors) {
                std::vector<Slot> goals;
                for (const Slot anchor : anchors) {
                  goals.push_back(anchor % 3 == 0 ? -1 : (anchor * 7) % 40);
                }
                return FakeUnits(std::vector<bool>(40)).Goals(anchors, goals);
              },
          .changes = {"goals/wanted", "next/goals/wanted", "next/reward",
                      "next/terminated", "next/done"}};
}

}  // namespace

INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(Nested, UnderTest());

}  // namespace rill
