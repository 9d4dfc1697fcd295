// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/row_arithmetic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/unit_transform_conformance.h"
#include "rill/transforms/testing/fake_units.h"
#include "rill/transforms/unit_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr int64_t kWidth = 4;  // Of TedSpec's observations.
constexpr int64_t kSteps = 4;
constexpr int64_t kFrames = 3;
constexpr double kGamma = 0.9;

NStepReturns::Options Steps(int64_t n = kSteps) {
  return {.num_steps = n, .gamma = kGamma};
}
StackFrames::Options Frames(std::vector<std::string> keys = {
                                "observation", "next/observation"}) {
  return {.num_frames = kFrames, .keys = std::move(keys)};
}

std::unique_ptr<UnitTransform> Make(const RowArithmetic::Options& options) {
  return *RowArithmetic::Create(options);
}

TEST(RowArithmeticTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<UnitTransform> rainbow,
      RowArithmetic::Create(
          {.n_step = NStepReturns::Options{.num_steps = 3},
           .frames = StackFrames::Options{.num_frames = 4,
                                          .keys = {"pixels", "next/pixels"}}}));
  EXPECT_EQ(rainbow->name(), "NStepReturns+StackFrames");
}

// --- What is read ------------------------------------------------------------

TEST(RowArithmeticTest, EachNeededLeafOfARowIsReadOnce) {
  const auto rainbow = Make({.n_step = Steps(), .frames = Frames()});
  RILL_ASSERT_OK_AND_ASSIGN(const auto reads, rainbow->PlanReads(TedSpec()));
  EXPECT_THAT(reads.rows.apart, ElementsAre("observation"));
  EXPECT_THAT(reads.rows.batch,
              UnorderedElementsAre("action", "done", "terminated", "truncated",
                                   "next/reward", "next/terminated",
                                   "next/truncated", "next/done"));
  ASSERT_EQ(reads.context.size(), 3u);
  EXPECT_THAT(reads.context[0].apart, ElementsAre("observation"));
  EXPECT_THAT(reads.context[0].batch, ElementsAre());
  EXPECT_THAT(
      reads.context[1].apart,
      UnorderedElementsAre("observation", "next/reward", "next/terminated",
                           "next/truncated", "next/done"));
  EXPECT_THAT(reads.context[1].batch, ElementsAre());
  EXPECT_THAT(reads.context[2].apart, ElementsAre("next/observation"));
  EXPECT_THAT(reads.context[2].batch, ElementsAre());
}

// --- Against a plain oracle --------------------------------------------------

// Single rows, slices or sequences, and what is made of them.
struct Case {
  std::string name;
  std::function<SamplePlan(const FakeUnits&, const std::vector<Slot>&)> rows;
  RowArithmetic::Options options;
};

std::vector<Case> Cases() {
  const auto rows = [](const FakeUnits& units, const std::vector<Slot>& slots) {
    return units.Transitions(slots);
  };
  const auto slices = [](const FakeUnits& units,
                         const std::vector<Slot>& slots) {
    return units.Slices(slots, 5, false);
  };
  const auto padded = [](const FakeUnits& units,
                         const std::vector<Slot>& slots) {
    return units.Slices(slots, 5, true);
  };
  const auto sequences = [](const FakeUnits& units,
                            const std::vector<Slot>& slots) {
    return units.Sequences(slots, 2, 4);
  };
  const SequenceMarks::Options marks = {
      .length = 3, .burn_in = 2, .bootstrap = 1};
  return {
      {"Rainbow", rows, {.n_step = Steps(), .frames = Frames()}},
      {"one step", rows, {.n_step = Steps(1), .frames = Frames()}},
      {"root frames alone",
       rows,
       {.n_step = Steps(), .frames = Frames({"observation"})}},
      {"next frames alone",
       slices,
       {.n_step = Steps(), .frames = Frames({"next/observation"})}},
      {"n steps over slices", slices, {.n_step = Steps()}},
      {"frames over slices", padded, {.frames = Frames()}},
      {"all over padded slices",
       padded,
       {.n_step = Steps(),
        .frames = Frames(),
        .slice_marks = SliceMarks::Options{}}},
      {"R2D2", sequences, {.n_step = Steps(), .sequence_marks = marks}},
      {"all over sequences",
       sequences,
       {.n_step = Steps(), .frames = Frames(), .sequence_marks = marks}},
  };
}

// Each row of the batch as the headers say, made one look at a time at the
// stored rows.
class Oracle {
 public:
  Oracle(const FakeUnits& units, const TensorDict& store,
         const RowArithmetic::Options& options)
      : units_(units),
        observation_(Leaf<float>(store, "observation")),
        next_(Leaf<float>(store, "next/observation")),
        reward_(Leaf<float>(store, "next/reward")),
        terminated_(Leaf<bool>(store, "next/terminated")),
        done_(Leaf<bool>(store, "next/done")),
        n_(options.n_step.has_value() ? options.n_step->num_steps : 1),
        options_(options) {}

  void ExpectRow(const TensorDict& batch, int64_t row, Slot slot) const {
    const Slot end = std::min(slot + n_ - 1, units_.Last(slot));
    ExpectObservation(batch, "observation", row, slot, nullptr);
    ExpectObservation(batch, "next/observation", row, end,
                      next_ + end * kWidth);
    if (!options_.n_step.has_value()) {
      ASSERT_EQ(Leaf<float>(batch, "next/reward")[row], reward_[slot]);
      return;
    }
    Slot stop = slot;
    double sum = reward_[slot];
    double power = 1;
    while (stop < end && !terminated_[stop]) {
      power *= kGamma;
      sum += static_cast<double>(static_cast<float>(power)) * reward_[++stop];
    }
    const int64_t steps = stop - slot + 1;
    ASSERT_EQ(Leaf<float>(batch, "next/reward")[row], static_cast<float>(sum));
    ASSERT_EQ(Leaf<int64_t>(batch, "steps_to_next_obs")[row], steps);
    ASSERT_EQ(Leaf<bool>(batch, "next/terminated")[row], terminated_[stop]);
    if (!options_.slice_marks.has_value()) {
      ASSERT_EQ(Leaf<bool>(batch, "next/done")[row], done_[stop]);
    }
  }

 private:
  template <typename T>
  static const T* Leaf(const TensorDict& dict, const char* key) {
    return dict.Find(key)->data<T>();
  }

  // A stack ends with the observation of `slot`, or with `newest` behind it.
  void ExpectObservation(const TensorDict& batch, const char* key, int64_t row,
                         Slot slot, const float* newest) const {
    const bool is_stack = options_.frames.has_value() &&
                          std::count(options_.frames->keys.begin(),
                                     options_.frames->keys.end(), key) > 0;
    const int64_t frames = is_stack ? kFrames : 1;
    std::vector<float> want;
    const int64_t roots = newest == nullptr ? frames : frames - 1;
    for (int64_t back = roots - 1; back >= 0; --back) {
      const Slot at = std::max(slot - back, units_.First(slot));
      want.insert(want.end(), observation_ + at * kWidth,
                  observation_ + (at + 1) * kWidth);
    }
    if (newest != nullptr) want.insert(want.end(), newest, newest + kWidth);
    const float* got = Leaf<float>(batch, key) + row * frames * kWidth;
    ASSERT_EQ(std::vector<float>(got, got + frames * kWidth), want) << key;
  }

  const FakeUnits& units_;
  const float* const observation_;
  const float* const next_;
  const float* const reward_;
  const bool* const terminated_;
  const bool* const done_;
  const int64_t n_;
  const RowArithmetic::Options options_;
};

TEST(RowArithmeticTest, AgreesWithAPlainLookAtTheStoredRows) {
  constexpr int64_t kRows = 300;
  const Rng rng(7, RngStream::kUser);
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.name);
    const auto arithmetic = Make(test.options);
    TensorDict batch;
    for (uint64_t round = 0; round < 20; ++round) {
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict store,
                                TedSpec().Random({kRows}, rng, round));
      std::vector<bool> ends;
      bool* terminated = store.Find("next/terminated")->data<bool>();
      for (int64_t i = 0; i < kRows; ++i) {
        const auto at = [i](int64_t k) { return static_cast<uint32_t>(i + k); };
        ends.push_back(rng.UniformInt(round, at(1000), 9) == 0);
        terminated[i] = rng.UniformInt(round, at(2000), 9) == 0;
      }
      const FakeUnits units(ends);
      std::vector<Slot> anchors;
      for (uint32_t i = 0; i < 32; ++i) {
        anchors.push_back(rng.UniformInt(round, 3000 + i, kRows));
      }
      const FakeUnits::Windows windows = {
          .frames = test.options.frames.has_value() ? kFrames : 0,
          .steps = test.options.n_step.has_value()
                       ? test.options.n_step->num_steps
                       : 0};
      const SamplePlan plan =
          units.WithWindows(test.rows(units, anchors), windows);
      const FakeSampleReader reader(TedSpec(), store);
      RILL_ASSERT_OK(reader.ReadInto(*arithmetic, plan, &batch));
      const Oracle oracle(units, store, test.options);
      for (int64_t row = 0; row < batch.batch_shape()[0]; ++row) {
        const size_t at = static_cast<size_t>(row);
        oracle.ExpectRow(
            batch, row,
            plan.rows.empty() ? plan.draws[at].slot : plan.rows[at]);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Slices 0 .. 2 and 5 .. 6 of trajectories 0 .. 4 and 5 .. 6.
TEST(RowArithmeticTest, MarksGoIntoTheFlagsThatWindowsEndWith) {
  FakeUnits units({false, false, false, false, true, false, true});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict store,
                            TedSpec().Random({7}, Rng(1, RngStream::kUser), 0));
  for (const char* key : {"next/terminated", "next/truncated", "next/done"}) {
    bool* flags = store.Find(key)->data<bool>();
    std::fill_n(flags, 7, false);
    if (std::string(key) != "next/truncated") flags[3] = true;
  }
  const auto arithmetic =
      Make({.n_step = Steps(2), .slice_marks = SliceMarks::Options{}});
  const FakeSampleReader reader(TedSpec(), store);
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      reader.Read(*arithmetic, units.WithWindows(units.Slices({0, 5}, 3, false),
                                                 {.steps = 2})));
  const auto flags = [&](const char* key) {
    const bool* values = batch.Find(key)->data<bool>();
    return std::vector<bool>(values, values + 5);
  };
  EXPECT_THAT(flags("next/terminated"),
              ElementsAre(false, false, true, false, false));
  EXPECT_THAT(flags("next/truncated"),
              ElementsAre(false, false, true, false, true));
  EXPECT_THAT(flags("next/done"), ElementsAre(false, false, true, false, true));
}

// --- Errors ------------------------------------------------------------------

TEST(RowArithmeticTest, PlansOfAnotherUnitAreRefusedByTheirLayout) {
  const auto rainbow = Make({.n_step = Steps(), .frames = Frames()});
  PlanLayout layout = {.context = {{PlanLayout::kFramesBefore, kFrames - 1},
                                   {PlanLayout::kStepsBehind, kSteps - 1},
                                   {PlanLayout::kWindowEnds, 1}}};
  RILL_EXPECT_OK(rainbow->CheckLayout(layout));
  layout.context[1].rows = 4;
  EXPECT_THAT(
      rainbow->CheckLayout(layout),
      StatusIs(kInvalidArgument,
               "NStepReturns+StackFrames: rows beside those of the batch: got "
               "a unit that plans frames before (2 rows), steps behind (4 "
               "rows), window ends (1 row), want frames before (2 rows), "
               "steps behind (3 rows), window ends (1 row)"));
  EXPECT_THAT(rainbow->CheckLayout({}),
              StatusIs(kInvalidArgument, HasSubstr("plans none, want frames")));

  const auto marks = Make(
      {.sequence_marks = SequenceMarks::Options{.length = 3, .burn_in = 2}});
  RILL_EXPECT_OK(marks->CheckLayout({.burn_in = 2, .length = 3}));
  EXPECT_THAT(
      marks->CheckLayout({.burn_in = 1, .length = 3}),
      StatusIs(kInvalidArgument, HasSubstr("got 2, 3 and 0, want the unit's 1, "
                                           "3 and 0")));
}

TEST(RowArithmeticTest, PartsThatContradictEachOtherAreNamed) {
  EXPECT_THAT(RowArithmetic::Create(
                  {.n_step = Steps(), .frames = Frames({"next/reward"})}),
              StatusIs(kInvalidArgument, AllOf(HasSubstr("frames and n_step"),
                                               HasSubstr("next/reward"))));
  EXPECT_THAT(
      RowArithmetic::Create(
          {.n_step = Steps(),
           .slice_marks = SliceMarks::Options{.truncated_key = "next/cut"}}),
      StatusIs(kInvalidArgument, HasSubstr("got \"next/cut\", want "
                                           "\"next/truncated\" in both")));
}

TEST(RowArithmeticTest, PaddingBetweenRowsIsRefused) {
  FakeUnits units({false, false, false, false, true});
  const auto returns = Make({.n_step = Steps(2)});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict store,
                            TedSpec().Random({5}, Rng(1, RngStream::kUser), 0));
  SamplePlan plan =
      units.WithWindows(units.Slices({0}, 3, false), {.steps = 2});
  plan.mask = {1, 0, 1};
  EXPECT_THAT(FakeSampleReader(TedSpec(), store).Read(*returns, plan),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("no padding between rows")));
}

UnitTransformUnderTest UnderTest(size_t which) {
  const Case test = Cases()[which];
  const auto plan = [test](const std::vector<Slot>& anchors) {
    const FakeUnits units = FakeUnits::OfSevens(UnitTransformUnderTest::kRows);
    return units.WithWindows(
        test.rows(units, anchors),
        {.frames = test.options.frames.has_value() ? kFrames : 0,
         .steps = test.options.n_step.has_value()
                      ? test.options.n_step->num_steps
                      : 0});
  };
  return {.make = [test] { return Make(test.options); },
          .rows = TedSpec(),
          .plan = plan,
          .changes = {"next/reward", "next/done", "next/terminated",
                      "next/truncated"}};
}

}  // namespace

INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(Rainbow, UnderTest(0));

}  // namespace rill
