// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/step_counter.h"

#include <algorithm>
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
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/wrong_parts.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// The step of an environment of two lanes where these flags are below next.
TensorDict Flags(bool done, bool truncated) {
  TensorDict made({2});
  RILL_EXPECT_OK(
      made.Set("next/done", *Tensor::From<bool>({done, done}, {2, 1})));
  RILL_EXPECT_OK(made.Set("next/truncated",
                          *Tensor::From<bool>({truncated, truncated}, {2, 1})));
  return made;
}

// A step after these counts.
TensorDict StepAfter(const StepTransform& counter,
                     const std::vector<int64_t>& counts,
                     const TensorDict& made) {
  auto environment = FakeEnvironment::Create(TedSpec(), 2, &counter);
  RILL_EXPECT_OK(environment);
  RILL_EXPECT_OK(environment->Reset({1, 1}));
  std::copy(counts.begin(), counts.end(),
            environment->step().Find("step_count")->data<int64_t>());
  RILL_EXPECT_OK(environment->Step(made));
  return environment->step();
}

TEST(StepCounterTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 500}));
  EXPECT_EQ(counter->name(), "StepCounter");
}

TEST(StepCounterTest, TheLimitIsListed) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 500}));
  const auto values = counter->option_values();
  EXPECT_EQ(values.values()[0].name, "max_steps");
  EXPECT_EQ(values.values()[0].text, "500");
}

TEST(StepCounterTest, CountsStepsOfEachLaneFromItsReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter, StepCounter::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment, FakeEnvironment::Create(TedSpec(), 2, counter.get()));
  const TensorDict& step = environment.step();
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  RILL_ASSERT_OK(environment.Step());
  EXPECT_THAT(step.Flat<int64_t>("step_count"),
              IsOkAndHolds(ElementsAre(0, 0)));
  EXPECT_THAT(step.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(1, 1)));
  RILL_ASSERT_OK(environment.Step());
  RILL_ASSERT_OK(environment.Reset({0, 1}));
  RILL_ASSERT_OK(environment.Step());
  EXPECT_THAT(step.Flat<int64_t>("step_count"),
              IsOkAndHolds(ElementsAre(2, 0)));
  EXPECT_THAT(step.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(3, 1)));
}

TEST(StepCounterTest, MaxStepsTruncatesAndIsDone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  const TensorDict step = StepAfter(*counter, {1, 2}, Flags(false, false));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, true)));
}

// More lanes than are counted at once, and some beside them.
TEST(StepCounterTest, EachOfManyLanesIsCountedAndTruncated) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 30}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment, FakeEnvironment::Create(TedSpec(), 19, counter.get()));
  TensorDict made({19});
  for (const char* flag : {"next/done", "next/truncated"}) {
    RILL_ASSERT_OK(made.Set(flag, *Tensor::Zeros(DType::kBool, {19, 1})));
  }
  for (int64_t limit_at = 0; limit_at < 19; ++limit_at) {
    RILL_ASSERT_OK(environment.Reset(std::vector<uint8_t>(19, 1)));
    int64_t* const counts =
        environment.step().Find("step_count")->data<int64_t>();
    for (int64_t i = 0; i < 19; ++i) counts[i] = i;
    counts[limit_at] = 29;
    RILL_ASSERT_OK(environment.Step(made));
    const TensorDict& step = environment.step();
    for (int64_t i = 0; i < 19; ++i) {
      EXPECT_EQ(step.Find("next/step_count")->data<int64_t>()[i],
                i == limit_at ? 30 : i + 1);
      for (const char* flag : {"next/done", "next/truncated"}) {
        EXPECT_EQ(step.Find(flag)->data<bool>()[i], i == limit_at) << flag;
      }
    }
  }
}

TEST(StepCounterTest, FlagsOfTheEnvironmentStay) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  const TensorDict step = StepAfter(*counter, {0, 7}, Flags(true, true));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(true, true)));
}

TEST(StepCounterTest, DoneStaysWhereItIsNotToBeUpdated) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto counter,
      StepCounter::Create({.max_steps = 1, .update_done = false}));
  const TensorDict step = StepAfter(*counter, {0, 0}, Flags(false, false));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true, true)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, false)));
}

TEST(StepCounterTest, TheLargestCountStays) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  const TensorDict step =
      StepAfter(*counter, {INT64_MAX, INT64_MIN}, Flags(false, false));
  EXPECT_THAT(step.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(INT64_MAX, INT64_MIN + 1)));
}

TEST(StepCounterTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(StepCounter::Create({.max_steps = 0}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("max_steps"), HasSubstr("got 0"))));
  EXPECT_THAT(StepCounter::Create({.step_count_key = "a//b"}),
              StatusIs(kInvalidArgument, HasSubstr("step_count_key")));
}

TEST(StepCounterTest, AKeyThatTheStepsHaveIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto counter, StepCounter::Create({.step_count_key = "observation"}));
  EXPECT_THAT(counter->PlanSteps(TedSpec()).status(),
              StatusIs(kInvalidArgument, HasSubstr("\"observation\"")));
}

TEST(StepCounterTest, FlagsOfAnotherShapeAreRefusedNamingBoth) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 3}));
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(spec.Set("next/done", LeafSpec::Binary({})));
  EXPECT_THAT(counter->PlanSteps(spec).status(),
              StatusIs(kInvalidArgument, AllOf(HasSubstr("next/done"),
                                               HasSubstr("want bool[1]"))));
  spec.Erase("next/done");
  EXPECT_THAT(counter->PlanSteps(spec).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

// --- Transforms that break a promise -----------------------------------------

// A StepCounter, changed. Its leaves: the count at the root, and below next.
class WrongCounter : public StepTransform {
 public:
  absl::string_view name() const override { return "WrongCounter"; }
  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    auto plan = right_->PlanSteps(step);
    if (plan.ok()) {
      RILL_EXPECT_OK(ChangePlan(&*plan));
    }
    return plan;
  }
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override {
    return right_->OnReset(mask, leaves, state);
  }
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    return right_->OnStep(leaves, state);
  }

 protected:
  virtual absl::Status ChangePlan(StepPlan* /*plan*/) const {
    return absl::OkStatus();
  }
  const StepTransform& right() const { return *right_; }

 private:
  const std::unique_ptr<StepTransform> right_ = *StepCounter::Create({});
};

struct LeavesItsDomain final : WrongCounter {
  absl::Status ChangePlan(StepPlan* plan) const override {
    return plan->spec.Set("next/step_count",
                          LeafSpec::Bounded(DType::kInt64, {1}, 0, 1));
  }
};
struct LaysNextOutOtherwise final : WrongCounter {
  absl::Status ChangePlan(StepPlan* plan) const override {
    return plan->spec.Set("next/step_count",
                          LeafSpec::Unbounded(DType::kInt32, {1}));
  }
};
struct NamesStatisticsThatItHasNot final : WrongCounter {
  absl::Status ChangePlan(StepPlan* plan) const override {
    plan->statistics = {"counts"};
    return absl::OkStatus();
  }
};
struct ResetsAllLanes final : WrongCounter {
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override {
    const std::vector<uint8_t> all(mask.size(), 1);
    return right().OnReset(all, leaves, state);
  }
};
struct LeavesTheRootToItsOwner final : WrongCounter {
  absl::Status OnReset(absl::Span<const uint8_t>, Leaves,
                       TensorDict*) const override {
    return absl::OkStatus();
  }
};
struct WritesAllLanesButTheLast final : WrongCounter {
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    const int64_t before = leaves[1].As<int64_t>().back();
    const absl::Status status = right().OnStep(leaves, state);
    leaves[1].As<int64_t>().back() = before;
    return status;
  }
};
struct AddsItsNumber final : WrongCounter {
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    const absl::Status status = right().OnStep(leaves, state);
    leaves[1].As<int64_t>()[0] += number;
    return status;
  }
  static inline int64_t made = 0;
  const int64_t number = ++made;
};
struct CountsInAMember final : WrongCounter {
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    const absl::Status status = right().OnStep(leaves, state);
    leaves[1].As<int64_t>()[0] += ++steps;
    return status;
  }
  mutable int64_t steps = 0;
};
struct WritesIntoTheOldState final : WrongCounter {
  absl::StatusOr<TensorDict> InitialState(int64_t) const override {
    TensorDict state;
    RILL_EXPECT_OK(state.Set("steps", *Tensor::Zeros(DType::kInt64, {1})));
    return state;
  }
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    ++state->Find("steps")->data<int64_t>()[0];
    return right().OnStep(leaves, state);
  }
};

template <typename T>
WrongPart<StepTransformConformanceTest> Wrong(std::string name,
                                              std::string test,
                                              std::string says) {
  return {std::move(name), std::move(test), std::move(says), [] {
            return StepTransformUnderTest{
                .make = [] { return std::make_unique<T>(); },
                .step_spec = TedSpec()};
          }};
}

std::vector<WrongPart<StepTransformConformanceTest>> WrongCounters() {
  const std::string written = "WritesAllOfItsNewLeaves";
  return {
      Wrong<LeavesItsDomain>("LeavesItsDomain", "PlansPredictTheValuesDomains",
                             "OnStep"),
      Wrong<LaysNextOutOtherwise>("LaysNextOutOtherwise",
                                  "NextIsLaidOutAsTheRoot", "step_count"),
      Wrong<NamesStatisticsThatItHasNot>(
          "NamesStatisticsThatItHasNot",
          "StatisticsAreOfTheStateAndInAKnownForm", "counts"),
      Wrong<ResetsAllLanes>("ResetsAllLanes", "ResetTouchesOnlyMaskedLanes",
                            "after a reset of no lane"),
      Wrong<LeavesTheRootToItsOwner>("LeavesTheRootToItsOwner", written,
                                     "step_count"),
      Wrong<WritesAllLanesButTheLast>("WritesAllLanesButTheLast", written,
                                      "next/step_count"),
      Wrong<AddsItsNumber>("AddsItsNumber", "EqualTransformsMakeEqualSteps",
                           "next/step_count"),
      Wrong<CountsInAMember>("CountsInAMember",
                             "ALoadedStateGoesOnAsTheSavedOne",
                             "next/step_count"),
      Wrong<WritesIntoTheOldState>("WritesIntoTheOldState",
                                   "OldStatesStayAsTheyWere",
                                   "old.CheckEqual(copy)"),
  };
}
RILL_REFUSES_WRONG_PARTS(StepTransformConformanceTest, WrongCounters);

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Counting, BesideAnEnvironment<StepCounter>({}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Truncating, BesideAnEnvironment<StepCounter>({.max_steps = 2}, TedSpec()));

}  // namespace rill
