// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/n_step_returns.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

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

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

std::unique_ptr<UnitTransform> Make(const NStepReturns::Options& options) {
  return *RowArithmetic::Create({.n_step = options});
}

// Rewards 1 .. 5, next observations 1 .. 5, terminated at step 2.
FakeSampleReader FiveSteps() {
  TensorDict store({5});
  const Tensor flags =
      *Tensor::From<bool>({false, false, true, false, false}, {5, 1});
  RILL_EXPECT_OK(
      store.Set("observation", *Tensor::From<float>({0, 1, 2, 3, 4}, {5, 1})));
  RILL_EXPECT_OK(store.Set("next/observation",
                           *Tensor::From<float>({1, 2, 3, 4, 5}, {5, 1})));
  RILL_EXPECT_OK(
      store.Set("next/reward", *Tensor::From<float>({1, 2, 3, 4, 5}, {5, 1})));
  RILL_EXPECT_OK(store.Set("next/done", flags));
  RILL_EXPECT_OK(store.Set("next/terminated", flags));
  return FakeSampleReader(TensorDictSpec::Of(store), store);
}

const std::vector<bool> kFiveEnds = {false, false, true, false, true};

TEST(NStepReturnsTest, T3_TwoSteps) {
  const auto returns = Make({.num_steps = 2, .gamma = 0.9});
  const SamplePlan plan = FakeUnits(kFiveEnds).NSteps({0, 1, 2, 3, 4}, 2);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            FiveSteps().Read(*returns, plan));
  EXPECT_THAT(batch.Get("next/reward"), IsOkAndHolds(TensorElementsAre<float>(
                                            2.8f, 4.7f, 3.f, 8.5f, 5.f)));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(TensorElementsAre<float>(2, 3, 3, 5, 5)));
  EXPECT_THAT(batch.Get("observation"),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, 2, 3, 4)));
  EXPECT_THAT(batch.Get("steps_to_next_obs"),
              IsOkAndHolds(TensorElementsAre<int64_t>(2, 2, 1, 2, 1)));
  EXPECT_THAT(batch.Get("gamma"), IsOkAndHolds(TensorElementsAre<float>(
                                      .81f, .81f, .9f, .81f, .9f)));
}

TEST(NStepReturnsTest, T3_OneStepChangesNothing) {
  const auto returns = Make({.num_steps = 1});
  const FakeSampleReader reader = FiveSteps();
  const SamplePlan plan = FakeUnits(kFiveEnds).NSteps({0, 1, 2, 3, 4}, 1);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, reader.Read(*returns, plan));
  EXPECT_THAT(batch.Pop("steps_to_next_obs"),
              IsOkAndHolds(TensorElementsAre<int64_t>(1, 1, 1, 1, 1)));
  RILL_EXPECT_OK(batch.Delete("gamma"));
  RILL_EXPECT_OK(batch.CheckEqual(reader.store()));
}

TEST(NStepReturnsTest, T4_TerminatedFollowsTheWindow) {
  const auto returns = Make({.num_steps = 2, .gamma = 0.9});
  const SamplePlan plan = FakeUnits(kFiveEnds).NSteps({0, 1, 2, 3, 4}, 2);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            FiveSteps().Read(*returns, plan));
  for (const char* key : {"next/terminated", "next/done"}) {
    EXPECT_THAT(batch.Get(key), IsOkAndHolds(TensorElementsAre<bool>(
                                    false, true, true, false, false)));
  }
}

// Windows that the unit did not cut at the terminal step.
TEST(NStepReturnsTest, SumStopsAtATerminalStepInsideTheWindow) {
  const auto returns = Make({.num_steps = 4, .gamma = 1});
  const SamplePlan plan =
      FakeUnits({false, false, false, false, true}).NSteps({0, 1, 2, 3}, 4);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            FiveSteps().Read(*returns, plan));
  EXPECT_THAT(batch.Get("next/reward"),
              IsOkAndHolds(TensorElementsAre<float>(6, 5, 3, 9)));
  EXPECT_THAT(batch.Get("steps_to_next_obs"),
              IsOkAndHolds(TensorElementsAre<int64_t>(3, 2, 1, 2)));
  EXPECT_THAT(batch.Get("next/terminated"),
              IsOkAndHolds(TensorElementsAre<bool>(true, true, true, false)));
}

TEST(NStepReturnsTest, ATruncationInsideTheWindowDoesNotStopTheSum) {
  FakeSampleReader five = FiveSteps();
  TensorDict store = five.store();
  RILL_ASSERT_OK(store.Rename("next/done", "next/truncated"));
  RILL_ASSERT_OK(
      store.Set("next/terminated", *Tensor::Zeros(DType::kBool, {5, 1})));
  const FakeSampleReader reader(TensorDictSpec::Of(store), store);
  const auto returns = Make({.num_steps = 4, .gamma = 1});
  const SamplePlan plan =
      FakeUnits({false, false, false, false, true}).NSteps({0, 2}, 4);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            reader.Read(*returns, plan));
  EXPECT_THAT(batch.Get("next/reward"),
              IsOkAndHolds(TensorElementsAre<float>(10, 12)));
  EXPECT_THAT(batch.Get("next/truncated"),
              IsOkAndHolds(TensorElementsAre<bool>(false, false)));
}

TEST(NStepReturnsTest, WithoutTerminatedDoneSaysIt) {
  FakeSampleReader five = FiveSteps();
  TensorDict store = five.store();
  RILL_ASSERT_OK(store.Delete("next/terminated"));
  const FakeSampleReader reader(TensorDictSpec::Of(store), store);
  const auto returns = Make({.num_steps = 5, .gamma = 1});
  const SamplePlan plan =
      FakeUnits({false, false, false, false, true}).NSteps({1}, 5);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            reader.Read(*returns, plan));
  EXPECT_THAT(batch.Get("next/reward"),
              IsOkAndHolds(TensorElementsAre<float>(5)));
  EXPECT_THAT(batch.Get("next/done"),
              IsOkAndHolds(TensorElementsAre<bool>(true)));
}

TEST(NStepReturnsTest, ReadsEachNeededByteOnce) {
  const auto returns = Make({.num_steps = 3});
  RILL_ASSERT_OK_AND_ASSIGN(const auto reads, returns->PlanReads(TedSpec()));
  EXPECT_THAT(reads.rows.batch, Not(Contains("next/observation")));
  EXPECT_THAT(reads.rows.batch, Contains("next/reward"));
  ASSERT_EQ(reads.context.size(), 2u);
  EXPECT_THAT(reads.context[0].apart,
              UnorderedElementsAre("next/reward", "next/terminated",
                                   "next/truncated", "next/done"));
  EXPECT_THAT(reads.context[0].batch, ElementsAre());
  EXPECT_THAT(reads.context[1].batch, ElementsAre("next/observation"));
  EXPECT_THAT(reads.context[1].apart, ElementsAre());
}

// --- Against a plain oracle --------------------------------------------------

// Two rewards of other shapes and dtypes.
TensorDictSpec ManyRewards() {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("next/agents/reward",
                          LeafSpec::Unbounded(DType::kFloat64, {3, 1})));
  RILL_EXPECT_OK(
      spec.Set("next/agents/goal", LeafSpec::Unbounded(DType::kInt16, {2})));
  return spec;
}

NStepReturns::Options ManyRewardsOptions(int64_t num_steps) {
  return {.num_steps = num_steps,
          .gamma = 0.97,
          .reward_keys = {"next/reward", "next/agents/reward"}};
}

template <typename T>
void ExpectSums(const FakeSampleReader& reader, absl::string_view key,
                const std::vector<Slot>& anchors,
                const std::vector<int64_t>& steps, const TensorDict& batch) {
  const Tensor stored = *reader.store().Find(key);
  const Tensor got = *batch.Find(key);
  const int64_t width = stored.num_elements() / stored.shape()[0];
  for (size_t i = 0; i < anchors.size(); ++i) {
    for (int64_t e = 0; e < width; ++e) {
      double sum = 0;
      double power = 1;
      for (int64_t k = 0; k < steps[i]; ++k, power *= 0.97) {
        const double reward = stored.data<T>()[(anchors[i] + k) * width + e];
        sum += static_cast<double>(static_cast<T>(power)) * reward;
      }
      ASSERT_EQ(got.data<T>()[static_cast<int64_t>(i) * width + e],
                static_cast<T>(sum))
          << key << " of draw " << i;
    }
  }
}

TEST(NStepReturnsTest, AgreesWithAPlainSumOverRandomTrajectories) {
  constexpr int64_t kRows = 500;
  const Rng rng(3, RngStream::kUser);
  for (uint64_t round = 0; round < 20; ++round) {
    const int64_t n = 1 + rng.UniformInt(round, 0, 12);
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict store,
                              ManyRewards().Random({kRows}, rng, round));
    std::vector<bool> ends;
    bool* terminated = store.Find("next/terminated")->data<bool>();
    for (int64_t i = 0; i < kRows; ++i) {
      const auto at = [i](int64_t k) { return static_cast<uint32_t>(i + k); };
      ends.push_back(rng.UniformInt(round, at(1000), 9) == 0);
      terminated[i] = rng.UniformInt(round, at(2000), 9) == 0;
    }
    const FakeUnits units(ends);
    std::vector<Slot> anchors;
    std::vector<int64_t> steps;
    for (uint32_t i = 0; i < 64; ++i) {
      const Slot slot = rng.UniformInt(round, 3000 + i, kRows);
      const Slot last = std::min(units.Last(slot), slot + n - 1);
      Slot stop = slot;
      while (stop < last && !terminated[stop]) ++stop;
      anchors.push_back(slot);
      steps.push_back(stop - slot + 1);
    }
    const FakeSampleReader reader(ManyRewards(), store);
    const auto returns = Make(ManyRewardsOptions(n));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                              reader.Read(*returns, units.NSteps(anchors, n)));
    ExpectSums<float>(reader, "next/reward", anchors, steps, batch);
    ExpectSums<double>(reader, "next/agents/reward", anchors, steps, batch);
    for (size_t i = 0; i < anchors.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i);
      const Slot stop = anchors[i] + steps[i] - 1;
      const Slot last = std::min(units.Last(anchors[i]), anchors[i] + n - 1);
      EXPECT_EQ(batch.Find("steps_to_next_obs")->data<int64_t>()[at], steps[i]);
      for (const char* key :
           {"next/done", "next/terminated", "next/truncated"}) {
        EXPECT_EQ(batch.Find(key)->data<bool>()[at],
                  store.Find(key)->data<bool>()[stop]);
      }
      for (const char* key : {"next/observation", "next/agents/goal"}) {
        EXPECT_THAT(*batch.Find(key)->Index(at),
                    BitEqualTo(*store.Find(key)->Index(last)));
      }
      EXPECT_THAT(*batch.Find("observation")->Index(at),
                  BitEqualTo(*store.Find("observation")->Index(anchors[i])));
    }
  }
}

// --- Errors ------------------------------------------------------------------

TEST(NStepReturnsTest, OptionsOutOfRangeAreNamed) {
  for (const int64_t steps : {int64_t{0}, int64_t{-1}, int64_t{1} << 21}) {
    EXPECT_THAT(NStepReturns::Create({.num_steps = steps}),
                StatusIs(kInvalidArgument, HasSubstr("num_steps")));
  }
  for (const double gamma : {0.0, -0.5, 1.5, std::nan("")}) {
    EXPECT_THAT(NStepReturns::Create({.gamma = gamma}),
                StatusIs(kInvalidArgument, HasSubstr("gamma")));
  }
  EXPECT_THAT(NStepReturns::Create({.reward_keys = {}}),
              StatusIs(kInvalidArgument, HasSubstr("reward_keys")));
  EXPECT_THAT(NStepReturns::Create({.reward_keys = {"a//b"}}),
              StatusIs(kInvalidArgument, HasSubstr("a//b")));
  EXPECT_THAT(NStepReturns::Create({.reward_keys = {"r", "r"}}),
              StatusIs(kInvalidArgument, HasSubstr("twice")));
}

TEST(NStepReturnsTest, RowsThatItCannotWorkOnAreNamed) {
  const auto returns = Make({.num_steps = 3});
  TensorDictSpec rows = TedSpec();
  RILL_ASSERT_OK(
      rows.Set("next/reward", LeafSpec::Unbounded(DType::kInt64, {1})));
  EXPECT_THAT(returns->PlanReads(rows),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("int64"), HasSubstr("next/reward"))));
  rows = TedSpec();
  RILL_ASSERT_OK(rows.Set("next/done", LeafSpec::Binary({})));
  EXPECT_THAT(returns->BatchSpec(rows),
              StatusIs(kInvalidArgument, HasSubstr("next/done")));
  rows = TedSpec();
  RILL_ASSERT_OK(rows.Set("gamma", LeafSpec::Binary({})));
  EXPECT_THAT(returns->BatchSpec(rows),
              StatusIs(kInvalidArgument, HasSubstr("gamma")));
}

TEST(NStepReturnsTest, WindowsThatAreNotTheUnitsAreRefused) {
  const auto returns = Make({.num_steps = 2});
  const FakeUnits units(kFiveEnds);
  const FakeSampleReader reader = FiveSteps();
  EXPECT_THAT(reader.Read(*returns, units.NSteps({0, 3}, 3)),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("at most 1 steps behind")));
  SamplePlan plan = units.NSteps({0, 3}, 2);
  plan.context[1].rows[1] = 3;
  EXPECT_THAT(reader.Read(*returns, plan),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("last")));
}

UnitTransformUnderTest UnderTest(const NStepReturns::Options& options) {
  return {.make = [options] { return Make(options); },
          .rows = ManyRewards(),
          .plan =
              [options](const std::vector<Slot>& anchors) {
                return FakeUnits::OfSevens(UnitTransformUnderTest::kRows)
                    .NSteps(anchors, options.num_steps);
              },
          .changes = {"next/reward", "next/agents/reward", "next/done",
                      "next/terminated", "next/truncated"}};
}

}  // namespace

INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(OneStep, UnderTest({}));
INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(FiveSteps,
                                       UnderTest(ManyRewardsOptions(5)));

}  // namespace rill
