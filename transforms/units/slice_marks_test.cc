// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/slice_marks.h"

#include <cstddef>
#include <cstdint>
#include <utility>
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

std::unique_ptr<UnitTransform> Make() {
  auto made = RowArithmetic::Create({.slice_marks = SliceMarks::Options{}});
  RILL_EXPECT_OK(made);
  return made.ok() ? *std::move(made) : nullptr;
}

// Steps 0 .. 3 and 4 .. 5 are trajectories: the first terminated, the second
// truncated.
FakeSampleReader SixSteps(const std::vector<std::string>& keys) {
  const auto flags = [](std::vector<int> at) {
    Tensor tensor = *Tensor::Zeros(DType::kBool, {6, 1});
    for (const int i : at) tensor.data<bool>()[i] = true;
    return tensor;
  };
  TensorDict store({6});
  RILL_EXPECT_OK(store.Set("next/terminated", flags({3})));
  RILL_EXPECT_OK(store.Set("next/truncated", flags({5})));
  RILL_EXPECT_OK(store.Set("next/done", flags({3, 5})));
  RILL_EXPECT_OK(store.Set("is_init", flags({0, 4})));
  TensorDict selected({6});
  for (const std::string& key : keys) {
    RILL_EXPECT_OK(selected.Set(key, *store.Find(key)));
  }
  return FakeSampleReader(TensorDictSpec::Of(selected), selected);
}

const std::vector<std::string> kAllKeys = {"next/terminated", "next/truncated",
                                           "next/done", "is_init"};
const FakeUnits kSixUnits({false, false, false, true, false, true});

TEST(SliceMarksTest, S6_LastRowIsTruncatedAndDoneAlsoWhereTerminated) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      SixSteps(kAllKeys).Read(*Make(), kSixUnits.Slices({2, 0, 4}, 2, false)));
  EXPECT_THAT(batch.Get("next/truncated"),
              IsOkAndHolds(TensorElementsAre<bool>(false, true, false, true,
                                                   false, true)));
  EXPECT_THAT(batch.Get("next/done"),
              IsOkAndHolds(TensorElementsAre<bool>(false, true, false, true,
                                                   false, true)));
  EXPECT_THAT(batch.Get("next/terminated"),
              IsOkAndHolds(TensorElementsAre<bool>(false, true, false, false,
                                                   false, false)));
}

TEST(SliceMarksTest, S6_TerminatedIsZerosWhereNotStored) {
  const FakeSampleReader reader = SixSteps({"next/done"});
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      reader.Read(*Make(), kSixUnits.Slices({0, 3}, 3, false)));
  EXPECT_THAT(
      batch.Get("next/terminated"),
      IsOkAndHolds(TensorElementsAre<bool>(false, false, false, false)));
  EXPECT_THAT(batch.Get("next/truncated"),
              IsOkAndHolds(TensorElementsAre<bool>(false, false, true, true)));
  EXPECT_THAT(batch.Get("next/done"),
              IsOkAndHolds(TensorElementsAre<bool>(false, false, true, true)));
}

TEST(SliceMarksTest, DoneIsEitherWhereNotStored) {
  const FakeSampleReader reader = SixSteps({"next/terminated"});
  SamplePlan plan = kSixUnits.Slices({2}, 2, false);
  plan.rows.push_back(4);  // A slice over the end of a trajectory.
  plan.segments.push_back(0);
  plan.generations.push_back(0);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, reader.Read(*Make(), plan));
  EXPECT_THAT(batch.Get("next/done"),
              IsOkAndHolds(TensorElementsAre<bool>(false, true, true)));
}

TEST(SliceMarksTest, S15_IsInitIsTheStoredOneOrTheFirstRow) {
  const FakeSampleReader reader = SixSteps({"is_init"});
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      reader.Read(*Make(), kSixUnits.Slices({0, 1, 4}, 2, false)));
  EXPECT_THAT(batch.Get("is_init"),
              IsOkAndHolds(TensorElementsAre<bool>(true, false, true, false,
                                                   true, false)));
  SamplePlan plan = kSixUnits.Slices({2}, 2, false);
  plan.rows.push_back(4);
  plan.segments.push_back(0);
  plan.generations.push_back(0);
  RILL_ASSERT_OK_AND_ASSIGN(batch, reader.Read(*Make(), plan));
  EXPECT_THAT(batch.Get("is_init"),
              IsOkAndHolds(TensorElementsAre<bool>(true, false, true)));
}

TEST(SliceMarksTest, S15_IsInitIsNeverInvented) {
  const FakeSampleReader reader = SixSteps({"next/done"});
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      reader.Read(*Make(), kSixUnits.Slices({0}, 2, false)));
  EXPECT_EQ(batch.Find("is_init"), nullptr);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec spec,
                            Make()->BatchSpec(reader.spec()));
  EXPECT_EQ(spec.Find("is_init"), nullptr);
}

TEST(SliceMarksTest, TheLastRealRowIsMarkedNotItsPadding) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      SixSteps({"is_init"})
          .Read(*Make(), kSixUnits.Sequences({1}, /*burn_in=*/2,
                                             /*length=*/5)));
  // Rows 0, 0, 1, 2, 3, 3, 3: the first and the last two are padding.
  EXPECT_THAT(batch.Get("next/truncated"),
              IsOkAndHolds(TensorElementsAre<bool>(false, false, false, false,
                                                   true, false, false)));
  EXPECT_THAT(batch.Get("is_init"),
              IsOkAndHolds(TensorElementsAre<bool>(true, true, false, false,
                                                   false, false, false)));
}

// --- Against a plain oracle --------------------------------------------------

TEST(SliceMarksTest, S6_S15_OverRandomPlans) {
  constexpr int64_t kRows = 200;
  const Rng rng(6, RngStream::kUser);
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(spec.Set("is_init", LeafSpec::Binary({1})));
  TensorDict batch;
  for (uint64_t round = 0; round < 40; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict store,
                              spec.Random({kRows}, rng, round));
    std::vector<bool> ends;
    for (uint32_t i = 0; i < kRows; ++i) {
      ends.push_back(rng.UniformInt(round, i, 7) == 0);
    }
    std::vector<Slot> anchors;
    for (uint32_t i = 0; i < 50; ++i) {
      anchors.push_back(rng.UniformInt(round, 1000 + i, kRows));
    }
    const SamplePlan plan =
        FakeUnits(ends).Slices(anchors, 1 + rng.UniformInt(round, 999, 9),
                               /*pad=*/round % 2 == 0);
    const FakeSampleReader reader(spec, store);
    RILL_ASSERT_OK(reader.ReadInto(*Make(), plan, &batch));
    const auto is_real = [&](size_t row) {
      return plan.mask.empty() || plan.mask[row] != 0;
    };
    for (size_t row = 0; row < plan.rows.size(); ++row) {
      bool is_first = is_real(row);
      bool is_last = is_real(row);
      for (size_t other = 0; other < plan.rows.size(); ++other) {
        if (plan.segments[other] != plan.segments[row] || !is_real(other)) {
          continue;
        }
        is_first = is_first && other >= row;
        is_last = is_last && other <= row;
      }
      const auto got = [&](const char* key) {
        return batch.Find(key)->data<bool>()[row];
      };
      const auto stored = [&](const char* key) {
        return store.Find(key)->data<bool>()[plan.rows[row]];
      };
      ASSERT_EQ(got("next/truncated"), stored("next/truncated") || is_last);
      ASSERT_EQ(got("next/done"), stored("next/done") || is_last);
      ASSERT_EQ(got("next/terminated"), stored("next/terminated"));
      ASSERT_EQ(got("is_init"), stored("is_init") || is_first);
      ASSERT_EQ(got("done"), stored("done"));
    }
  }
}

// --- Errors ------------------------------------------------------------------

TEST(SliceMarksTest, BadKeysAndFlagsAreNamed) {
  EXPECT_THAT(SliceMarks::Create({.done_key = "a//b"}),
              StatusIs(kInvalidArgument, HasSubstr("a//b")));
  EXPECT_THAT(SliceMarks::Create({.is_init_key = "next/done"}),
              StatusIs(kInvalidArgument, HasSubstr("twice")));
  TensorDictSpec rows = TedSpec();
  RILL_ASSERT_OK(rows.Set("is_init", LeafSpec::Binary({})));
  EXPECT_THAT(Make()->PlanReads(rows),
              StatusIs(kInvalidArgument, HasSubstr("is_init")));
}

UnitTransformUnderTest UnderTest(bool has_flags) {
  TensorDictSpec rows = TedSpec();
  RILL_EXPECT_OK(rows.Set("is_init", LeafSpec::Binary({1})));
  if (!has_flags) {
    rows.Erase("next/truncated");
    rows.Erase("next/terminated");
    rows.Erase("next/done");
    rows.Erase("is_init");
  }
  return {
      .make = Make,
      .rows = rows,
      .plan =
          [has_flags](const std::vector<Slot>& anchors) {
            std::vector<bool> ends(UnitTransformUnderTest::kRows);
            for (size_t i = 0; i < ends.size(); ++i) ends[i] = i % 7 == 2;
            return FakeUnits(ends).Slices(anchors, 4, has_flags);
          },
      .changes = {"next/truncated", "next/done", "next/terminated", "is_init"}};
}

}  // namespace

INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(Stored, UnderTest(true));
INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(NotStored, UnderTest(false));

}  // namespace rill
