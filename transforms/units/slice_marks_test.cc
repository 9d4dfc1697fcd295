// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/slice_marks.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/testing/wrong_parts.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/unit_transform_conformance.h"
#include "rill/transforms/testing/fake_units.h"
#include "rill/transforms/unit_transform.h"
#include "rill/transforms/units/row_arithmetic.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

std::unique_ptr<UnitTransform> Make() {
  return *RowArithmetic::Create({.slice_marks = SliceMarks::Options{}});
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
            return FakeUnits::OfSevens(UnitTransformUnderTest::kRows)
                .Slices(anchors, 4, has_flags);
          },
      .changes = {"next/truncated", "next/done", "next/terminated", "is_init"}};
}

// --- Units' transforms that break a promise ----------------------------------

// SliceMarks, changed.
class WrongMarks : public UnitTransform {
 public:
  WrongMarks() : UnitTransform({.name = "SliceMarks", .is_drawwise = true}) {}

  absl::Status CheckLayout(const PlanLayout& plans) const override {
    return right_->CheckLayout(plans);
  }
  absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const override {
    return right_->PlanReads(rows);
  }
  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override {
    return right_->BatchSpec(rows);
  }
  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    return right_->Apply(plan, rows, context, batch);
  }

 protected:
  const UnitTransform& right() const { return *right_; }

 private:
  const std::unique_ptr<UnitTransform> right_ = Make();
};

// Changes a batch that was made.
struct ChangesBatches : WrongMarks {
  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    const absl::Status status = right().Apply(plan, rows, context, batch);
    if (status.ok()) Change(plan, batch);
    return status;
  }
  virtual void Change(const SamplePlan& plan, TensorDict* batch) const = 0;
};
struct ChangesAnObservation final : ChangesBatches {
  void Change(const SamplePlan&, TensorDict* batch) const override {
    batch->Find("observation")->data<float>()[0] += 1;
  }
};
struct PutsANewTensor final : ChangesBatches {
  void Change(const SamplePlan&, TensorDict* batch) const override {
    RILL_EXPECT_OK(batch->Set("next/done", *batch->Find("next/done")->Clone()));
  }
};
struct MarksByTheNumberOfDraws final : ChangesBatches {
  void Change(const SamplePlan& plan, TensorDict* batch) const override {
    if (plan.draws.empty()) return;
    batch->Find("next/done")->data<bool>()[0] = plan.draws.size() > 1;
  }
};
struct MarksByItsNumber final : ChangesBatches {
  void Change(const SamplePlan&, TensorDict* batch) const override {
    batch->Find("next/done")->data<bool>()[0] = number % 2 == 0;
  }
  static inline int made = 0;
  const int number = ++made;
};

struct NamesALeafTwice final : WrongMarks {
  absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const override {
    auto reads = right().PlanReads(rows);
    if (reads.ok()) reads->rows.batch.push_back(reads->rows.batch.front());
    return reads;
  }
};
struct PredictsAnotherDType final : WrongMarks {
  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override {
    auto spec = right().BatchSpec(rows);
    if (spec.ok()) {
      RILL_RETURN_IF_ERROR(
          spec->Set("next/done", LeafSpec::Binary({1}, DType::kUInt8)));
    }
    return spec;
  }
};
struct PredictsForAnyRows final : WrongMarks {
  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override {
    auto spec = right().BatchSpec(rows);
    return spec.ok() ? *spec : rows;
  }
};
// The last mark of a batch that is used again stays.
struct LeavesTheLastMark final : WrongMarks {
  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    const Tensor* const used = batch->Find("next/truncated");
    const bool is_used = used != nullptr && used->num_elements() > 0;
    const bool last = is_used && used->data<bool>()[used->num_elements() - 1];
    const absl::Status status = right().Apply(plan, rows, context, batch);
    if (is_used && status.ok()) {
      const Tensor& marks = *batch->Find("next/truncated");
      marks.data<bool>()[marks.num_elements() - 1] = last;
    }
    return status;
  }
};
struct TakesBrokenPlans final : WrongMarks {
  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    const absl::Status status = right().Apply(plan, rows, context, batch);
    return absl::IsInternal(status) ? absl::OkStatus() : status;
  }
};
struct SaysUnknownOfOtherInputs final : WrongMarks {
  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    const absl::Status status = right().Apply(plan, rows, context, batch);
    return status.ok() ? status : absl::UnknownError(status.message());
  }
};

template <typename T>
WrongPart<UnitTransformConformanceTest> Wrong(std::string name,
                                              std::string test,
                                              std::string says,
                                              bool has_flags = true) {
  return {std::move(name), std::move(test), std::move(says), [has_flags] {
            UnitTransformUnderTest one = UnderTest(has_flags);
            one.make = [] { return std::make_unique<T>(); };
            return one;
          }};
}

std::vector<WrongPart<UnitTransformConformanceTest>> WrongUnits() {
  const std::string reuses = "ReusesTheLeavesOfABatchThatItMade";
  return {
      Wrong<NamesALeafTwice>("NamesALeafTwice", "ReadsNameLeavesOfTheRowsOnce",
                             "filled.insert(key)"),
      Wrong<PredictsAnotherDType>("PredictsAnotherDType",
                                  "SpecPredictsWhatApplyMakes", "next/done"),
      Wrong<PredictsForAnyRows>("PredictsForAnyRows",
                                "RowsOfAnotherKindAreRefusedByBoth",
                                "reads.code()"),
      Wrong<ChangesAnObservation>("ChangesAnObservation",
                                  "LeavesItDoesNotChangeAreAsGathered",
                                  "observation"),
      Wrong<PutsANewTensor>("PutsANewTensor", reuses, "next/done"),
      // Where the marks are stored, they are gathered before.
      Wrong<LeavesTheLastMark>("LeavesTheLastMark", reuses, "next/truncated",
                               /*has_flags=*/false),
      Wrong<MarksByItsNumber>("MarksByItsNumber",
                              "EqualTransformsMakeEqualThings", "next/done"),
      Wrong<MarksByTheNumberOfDraws>("MarksByTheNumberOfDraws",
                                     "ADrawIsTheSameWhateverIsBesideIt",
                                     "draw 0"),
      Wrong<TakesBrokenPlans>("TakesBrokenPlans", "BrokenPlansAreErrors",
                              "plan 0"),
      Wrong<SaysUnknownOfOtherInputs>("SaysUnknownOfOtherInputs",
                                      "InputsOfAnotherKindAreErrors",
                                      "apply(wrong)"),
  };
}
RILL_REFUSES_WRONG_PARTS(UnitTransformConformanceTest, WrongUnits);

}  // namespace

INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(Stored, UnderTest(true));
INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(NotStored, UnderTest(false));

}  // namespace rill
