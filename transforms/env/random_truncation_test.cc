// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/random_truncation.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr int64_t kLanes = 200;

TensorDictSpec CountedSpec() {
  TensorDictSpec spec = TedSpec();
  for (const char* key : {"step_count", "next/step_count"}) {
    RILL_EXPECT_OK(
        spec.Set(key, LeafSpec::Bounded(DType::kInt64, {1}, 0, 1000)));
  }
  return spec;
}

// The horizons of one more episode of each lane: the least counts that end it.
std::vector<int64_t> Horizons(const StepTransform& truncation,
                              TensorDict* state, int64_t lanes = kLanes) {
  auto environment = FakeEnvironment::Create(CountedSpec(), lanes, &truncation);
  RILL_EXPECT_OK(environment);
  environment->state() = *state;
  RILL_EXPECT_OK(environment->Reset(std::vector<uint8_t>(lanes, 1)));
  *state = environment->state();
  std::vector<int64_t> horizons(lanes, 0);
  TensorDict made({lanes});
  for (const char* flag : {"next/done", "next/truncated"}) {
    RILL_EXPECT_OK(made.Set(flag, *Tensor::Zeros(DType::kBool, {lanes, 1})));
  }
  for (int64_t count = 1; count <= 20; ++count) {
    RILL_EXPECT_OK(
        made.Set("next/step_count",
                 *Tensor::From<int64_t>(std::vector<int64_t>(lanes, count),
                                        {lanes, 1})));
    RILL_EXPECT_OK(environment->Step(made));
    const auto done = *environment->step().Flat<bool>("next/done");
    const auto cut = *environment->step().Flat<bool>("next/truncated");
    for (int64_t lane = 0; lane < lanes; ++lane) {
      EXPECT_EQ(done[lane], cut[lane]);
      if (done[lane] && horizons[lane] == 0) horizons[lane] = count;
    }
  }
  return horizons;
}

size_t Distinct(const std::vector<int64_t>& values) {
  return std::set<int64_t>(values.begin(), values.end()).size();
}

TEST(RandomTruncationTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto truncation,
      RandomTruncation::Create(
          {.min_horizon = 50, .max_horizon = 200, .prob = 0.1}));
  EXPECT_EQ(truncation->name(), "RandomTruncation");
}

TEST(RandomTruncationTest, HorizonsOfEpisodesAreAsTheOptionsSay) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto truncation, RandomTruncation::Create({.min_horizon = 5,
                                                 .max_horizon = 12,
                                                 .prob = 0,
                                                 .first_episode_prob = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, truncation->InitialState(kLanes));
  const std::vector<int64_t> first = Horizons(*truncation, &state);
  EXPECT_THAT(first, Each(AllOf(Ge(1), Le(12))));
  EXPECT_EQ(Distinct(first), 12);
  const std::vector<int64_t> second = Horizons(*truncation, &state);
  EXPECT_THAT(second, Each(AllOf(Ge(5), Le(12))));
  EXPECT_EQ(Distinct(second), 8);
  EXPECT_THAT(Horizons(*truncation, &state), Each(12));
}

TEST(RandomTruncationTest, ProbIsHowOftenAHorizonIsRandom) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto truncation, RandomTruncation::Create(
                           {.min_horizon = 2, .max_horizon = 12, .prob = 0.5}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, truncation->InitialState(kLanes));
  Horizons(*truncation, &state);
  const std::vector<int64_t> later = Horizons(*truncation, &state);
  // Half of them, and one of eleven of the others: 109; +-5 deviations.
  const auto full = std::count(later.begin(), later.end(), 12);
  EXPECT_GT(full, 74);
  EXPECT_LT(full, 144);
}

TEST(RandomTruncationTest, ALaneHasTheSameHorizonsBesideOthers) {
  RILL_ASSERT_OK_AND_ASSIGN(auto truncation,
                            RandomTruncation::Create({.max_horizon = 12}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict many, truncation->InitialState(kLanes));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict few, truncation->InitialState(3));
  std::vector<int64_t> all = Horizons(*truncation, &many);
  all.resize(3);
  EXPECT_EQ(Horizons(*truncation, &few, 3), all);
}

TEST(RandomTruncationTest, AResetLeavesTheHorizonsOfOtherLanes) {
  RILL_ASSERT_OK_AND_ASSIGN(auto truncation,
                            RandomTruncation::Create({.max_horizon = 1000}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, truncation->InitialState(3));
  RILL_ASSERT_OK(truncation->OnReset({1, 1, 1}, {}, &state));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, state.Clone());
  RILL_ASSERT_OK(truncation->OnReset({0, 1, 0}, {}, &state));
  RILL_ASSERT_OK_AND_ASSIGN(const auto horizons,
                            before.Flat<int64_t>("horizons"));
  ASSERT_NE(horizons[1], 1000);
  EXPECT_THAT(state.Flat<int64_t>("horizons"),
              IsOkAndHolds(ElementsAre(horizons[0], 1000, horizons[2])));
}

TEST(RandomTruncationTest, EqualSeedsAreEqualAndOthersAreNot) {
  const auto first = [](uint64_t seed, uint64_t env_seed) {
    auto truncation =
        *RandomTruncation::Create({.max_horizon = 12, .seed = seed});
    TensorDict state = *truncation->InitialState(kLanes);
    Horizons(*truncation, &state);
    RILL_EXPECT_OK(truncation->OnSeed(env_seed, &state));
    return Horizons(*truncation, &state);
  };
  EXPECT_EQ(first(1, 2), first(1, 2));
  EXPECT_NE(first(1, 2), first(2, 2));
  EXPECT_NE(first(1, 2), first(1, 3));
}

TEST(RandomTruncationTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(RandomTruncation::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("max_horizon")));
  EXPECT_THAT(RandomTruncation::Create({.min_horizon = 0, .max_horizon = 3}),
              StatusIs(kInvalidArgument, HasSubstr("min_horizon")));
  EXPECT_THAT(RandomTruncation::Create({.max_horizon = 3, .prob = 1.5}),
              StatusIs(kInvalidArgument, HasSubstr("prob: got 1.5")));
  EXPECT_THAT(
      RandomTruncation::Create({.max_horizon = 3, .first_episode_prob = -1}),
      StatusIs(kInvalidArgument, HasSubstr("first_episode_prob")));
  EXPECT_THAT(RandomTruncation::Create({.max_horizon = 3, .done_key = ""}),
              StatusIs(kInvalidArgument, HasSubstr("done_key")));
}

TEST(RandomTruncationTest, WantsAStepCounterBeforeIt) {
  RILL_ASSERT_OK_AND_ASSIGN(auto truncation,
                            RandomTruncation::Create({.max_horizon = 3}));
  EXPECT_THAT(truncation->PlanSteps(TedSpec()).status(),
              StatusIs(kInvalidArgument, HasSubstr("StepCounter")));
}

TEST(RandomTruncationTest, AStateOfOtherLanesIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto truncation,
                            RandomTruncation::Create({.max_horizon = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, truncation->InitialState(2));
  EXPECT_THAT(
      truncation->OnReset({1, 1, 1}, {}, &state),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("3 lanes")));
}

TEST(RandomTruncationTest, HorizonsOfOtherLanesAndDTypesAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto truncation,
                            RandomTruncation::Create({.max_horizon = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            truncation->PlanSteps(CountedSpec()));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step, plan.spec.Zero({3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      BoundRows rows,
      BoundRows::Create("Test", plan.leaves, {.is_passed_in = true}));
  RILL_ASSERT_OK(rows.Bind(&step));
  for (const auto& [dtype, lanes] : std::vector<std::pair<DType, int64_t>>{
           {DType::kInt64, 2}, {DType::kInt64, 4}, {DType::kInt32, 3}}) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, truncation->InitialState(3));
    RILL_ASSERT_OK(state.Set("horizons", *Tensor::Zeros(dtype, {lanes, 1})));
    EXPECT_FALSE(truncation->OnReset({1, 1, 1}, {}, &state).ok());
    EXPECT_FALSE(truncation->OnStep(rows.leaves(), &state).ok());
  }
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    RandomTruncation,
    BesideAnEnvironment<RandomTruncation>({.max_horizon = 400, .prob = 0.5},
                                          CountedSpec()));

}  // namespace rill
