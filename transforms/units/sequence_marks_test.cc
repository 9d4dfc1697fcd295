// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/sequence_marks.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/unit_transform_conformance.h"
#include "rill/transforms/testing/fake_units.h"
#include "rill/transforms/units/row_arithmetic.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

std::unique_ptr<UnitTransform> Make(const SequenceMarks::Options& options) {
  return *RowArithmetic::Create({.sequence_marks = options});
}

FakeSampleReader TenSteps() {
  TensorDict store({10});
  RILL_EXPECT_OK(store.Set(
      "obs", *Tensor::From<int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {10})));
  return FakeSampleReader(TensorDictSpec::Of(store), store);
}

const FakeUnits kTwoTrajectories({0, 0, 0, 0, 1, 0, 0, 0, 0, 1});

// The example of TorchRL's Sequence, and a sequence that runs over an end.
TEST(SequenceMarksTest, SaysWhatTheSequenceUnitSays) {
  const auto marks = Make({.length = 2, .burn_in = 1, .bootstrap = 1});
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      TenSteps().Read(*marks, kTwoTrajectories.Sequences({5, 8}, 1, 3)));
  EXPECT_THAT(batch.Get("obs"),
              IsOkAndHolds(TensorElementsAre<int64_t>(5, 5, 6, 7, 7, 8, 9, 9)));
  EXPECT_THAT(batch.Get("sequence_id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 0, 0, 0, 1, 1, 1, 1)));
  EXPECT_THAT(batch.Get("step_in_sequence"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 1, 2, 3, 0, 1, 2, 3)));
  EXPECT_THAT(batch.Get("learning_mask"),
              IsOkAndHolds(TensorElementsAre<bool>(false, true, true, false,
                                                   false, true, true, false)));
  EXPECT_THAT(batch.Get("validity_mask"),
              IsOkAndHolds(TensorElementsAre<bool>(false, true, true, true,
                                                   true, true, true, false)));
  EXPECT_THAT(batch.Get("anchor_index"),
              IsOkAndHolds(TensorElementsAre<int64_t>(5, 5, 5, 5, 8, 8, 8, 8)));
}

TEST(SequenceMarksTest, WithoutAMaskEveryRowIsValid) {
  const auto marks = Make({.length = 3});
  const SamplePlan plan = kTwoTrajectories.Sequences({1}, 0, 3);
  ASSERT_TRUE(plan.mask.empty());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            TenSteps().Read(*marks, plan));
  EXPECT_THAT(batch.Get("validity_mask"),
              IsOkAndHolds(TensorElementsAre<bool>(true, true, true)));
}

TEST(SequenceMarksTest, MasksTellRealRowsOverRandomPlans) {
  const Rng rng(8, RngStream::kUser);
  const FakeSampleReader reader = TenSteps();
  TensorDict batch;
  for (uint64_t round = 0; round < 60; ++round) {
    const int64_t burn_in = rng.UniformInt(round, 0, 4);
    const int64_t length = 1 + rng.UniformInt(round, 1, 5);
    const int64_t bootstrap = rng.UniformInt(round, 2, 3);
    const int64_t total = burn_in + length + bootstrap;
    std::vector<Slot> anchors;
    for (uint32_t i = 0; i < 20; ++i) {
      anchors.push_back(rng.UniformInt(round, 10 + i, 10));
    }
    const auto marks =
        Make({.length = length, .burn_in = burn_in, .bootstrap = bootstrap});
    RILL_ASSERT_OK(reader.ReadInto(
        *marks,
        kTwoTrajectories.Sequences(anchors, burn_in, length + bootstrap),
        &batch));
    const int64_t* obs = batch.Find("obs")->data<int64_t>();
    const int64_t* step = batch.Find("step_in_sequence")->data<int64_t>();
    const int64_t* id = batch.Find("sequence_id")->data<int64_t>();
    const int64_t* anchor = batch.Find("anchor_index")->data<int64_t>();
    const bool* learning = batch.Find("learning_mask")->data<bool>();
    const bool* validity = batch.Find("validity_mask")->data<bool>();
    for (int64_t row = 0; row < 20 * total; ++row) {
      ASSERT_EQ(id[row], row / total);
      ASSERT_EQ(step[row], row % total);
      ASSERT_EQ(anchor[row], anchors[static_cast<size_t>(row / total)]);
      const int64_t from_anchor = step[row] - burn_in;
      ASSERT_EQ(validity[row], obs[row] == anchor[row] + from_anchor);
      ASSERT_EQ(learning[row], from_anchor >= 0 && from_anchor < length);
    }
  }
}

// Sequences that end with their trajectory, SequenceEnd::kStop.
TEST(SequenceMarksTest, ShortSequencesAreMarkedAsFarAsTheyGo) {
  const auto marks = Make({.length = 2, .bootstrap = 1});
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      TenSteps().Read(*marks, kTwoTrajectories.Slices({4, 3, 7}, 3, false)));
  EXPECT_THAT(batch.Get("obs"),
              IsOkAndHolds(TensorElementsAre<int64_t>(4, 3, 4, 7, 8, 9)));
  EXPECT_THAT(batch.Get("sequence_id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 1, 1, 2, 2, 2)));
  EXPECT_THAT(batch.Get("step_in_sequence"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 0, 1, 0, 1, 2)));
  EXPECT_THAT(batch.Get("learning_mask"),
              IsOkAndHolds(TensorElementsAre<bool>(true, true, true, true, true,
                                                   false)));
  EXPECT_THAT(batch.Get("validity_mask"),
              IsOkAndHolds(
                  TensorElementsAre<bool>(true, true, true, true, true, true)));
  EXPECT_THAT(batch.Get("anchor_index"),
              IsOkAndHolds(TensorElementsAre<int64_t>(4, 3, 3, 7, 7, 7)));
}

TEST(SequenceMarksTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(SequenceMarks::Create({.length = 0}),
              StatusIs(kInvalidArgument, HasSubstr("length")));
  EXPECT_THAT(SequenceMarks::Create({.burn_in = -1}),
              StatusIs(kInvalidArgument, HasSubstr("burn_in")));
  EXPECT_THAT(SequenceMarks::Create({.bootstrap = INT64_MAX}),
              StatusIs(kInvalidArgument, HasSubstr("bootstrap")));
}

TEST(SequenceMarksTest, RowsWithItsKeysAndOtherPlansAreRefused) {
  const auto marks = Make({.length = 3});
  TensorDictSpec rows;
  RILL_ASSERT_OK(rows.Set("anchor_index", LeafSpec::Binary({1})));
  EXPECT_THAT(marks->PlanReads(rows),
              StatusIs(kInvalidArgument, HasSubstr("anchor_index")));
  EXPECT_THAT(
      TenSteps().Read(*marks, kTwoTrajectories.Slices({3, 0}, 4, false)),
      StatusIs(absl::StatusCode::kInternal,
               HasSubstr("got 4 rows of draw 1, want 1 to 3")));
}

UnitTransformUnderTest UnderTest() {
  return {.make = [] { return Make({.length = 3, .burn_in = 2}); },
          .rows = TedSpec(),
          .plan =
              [](const std::vector<Slot>& anchors) {
                return FakeUnits::OfSevens(UnitTransformUnderTest::kRows)
                    .Sequences(anchors, 2, 3);
              },
          .changes = {}};
}

}  // namespace

INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(BurnIn, UnderTest());

}  // namespace rill
