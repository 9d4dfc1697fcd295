// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/classic_control/pow_two.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Lt;
using ::testing::Not;
using ::testing::StartsWith;

using MadeEnv = absl::StatusOr<std::unique_ptr<Env>>;

struct Task {
  std::string name;
  std::string id;
  std::string wanted;  // Of an action.
  std::function<MadeEnv(int64_t lanes, int64_t max_episode_steps,
                        uint64_t seed)>
      make;
};

template <typename Options>
auto Maker(MadeEnv (*make)(const Options&)) {
  return [make](int64_t lanes, int64_t max_episode_steps, uint64_t seed) {
    return make(
        {.lanes = lanes, .max_episode_steps = max_episode_steps, .seed = seed});
  };
}

std::vector<Task> Tasks() {
  return {
      {"CartPole", "CartPole-v1", "0 or 1", Maker(MakeCartPole)},
      {"MountainCar", "MountainCar-v0", "0, 1 or 2", Maker(MakeMountainCar)},
      {"MountainCarContinuous", "MountainCarContinuous-v0", "[-1, 1]",
       Maker(MakeMountainCarContinuous)},
      {"Acrobot", "Acrobot-v1", "0, 1 or 2", Maker(MakeAcrobot)},
      {"Pendulum", "Pendulum-v1", "[-2, 2]", Maker(MakePendulum)}};
}

class ClassicControlTest : public testing::TestWithParam<Task> {};

TEST_P(ClassicControlTest, TruncatesAtTheLimitOnly) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, GetParam().make(1, 3, 0));
  EXPECT_EQ(env->name(), GetParam().id);
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto truncated,
                            env->step().Flat<bool>("next/truncated"));
  for (const bool want : {false, false, true}) {
    RILL_ASSERT_OK(env->Step());
    EXPECT_EQ(truncated[0], want);
    EXPECT_THAT(env->step().Flat<bool>("next/terminated"),
                IsOkAndHolds(ElementsAre(false)));
  }
  EXPECT_THAT(env->Step(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("lane 0 is done or was never reset")));
}

TEST_P(ClassicControlTest, RefusedActionsSayLaneAndValueAndMoveNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, GetParam().make(2, 9, 0));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, env->SaveState());
  const auto expect_refused = [&](const std::string& got) {
    EXPECT_THAT(env->Step(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith(GetParam().name + "::Step: "),
                               HasSubstr("action of lane 1: got " + got +
                                         ", want " + GetParam().wanted))));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, env->SaveState());
    RILL_EXPECT_OK(after.CheckEqual(before));
  };
  const auto choices = env->step().Flat<int64_t>("action");
  if (choices.ok()) {
    for (const int64_t choice : {int64_t{-1}, int64_t{3}, INT64_MIN}) {
      choices->at(1) = choice;
      expect_refused(std::to_string(choice));
    }
    return;
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto force, env->step().Flat<float>("action"));
  force[1] = 2.5f;
  expect_refused("2.5");
  force[1] = -2.5f;
  expect_refused("-2.5");
  force[1] = std::numeric_limits<float>::quiet_NaN();
  expect_refused("nan");
  force[1] = -std::numeric_limits<float>::infinity();
  expect_refused("-inf");
}

TEST_P(ClassicControlTest, LanesBeginApartAndAreTheSameAmongAnyNumber) {
  const auto first = [&](int64_t lanes, uint64_t seed) {
    auto env = GetParam().make(lanes, 9, seed);
    if (!env.ok() || !(*env)->Reset(std::vector<uint8_t>(lanes, 1)).ok()) {
      return std::vector<float>();
    }
    auto all = (*env)->step().Flat<float>("observation");
    return std::vector<float>(all->begin(), all->end());
  };
  const std::vector<float> few = first(2, 5);
  ASSERT_THAT(few, Not(ElementsAre()));
  EXPECT_NE(few[0], few[few.size() / 2]);
  EXPECT_EQ(few, first(2, 5));
  EXPECT_NE(few, first(2, 6));
  std::vector<float> many = first(7, 5);
  many.resize(few.size());
  EXPECT_EQ(few, many);
}

TEST_P(ClassicControlTest, LoadStateNamesWhatItCannotTake) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, GetParam().make(2, 9, 0));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict good, env->SaveState());
  const auto expect_refused = [&](const TensorDict& state, const char* text) {
    EXPECT_THAT(
        env->LoadState(state),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(text)));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict now, env->SaveState());
    RILL_EXPECT_OK(now.CheckEqual(good));
  };
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict bad, good.Clone());
  RILL_ASSERT_OK_AND_ASSIGN(auto state, bad.Flat<double>("state"));
  const size_t second = state.size() / 2;
  state[second] = std::numeric_limits<double>::quiet_NaN();
  expect_refused(bad, "state of lane 1: got nan, want finite");
  state[second] = 0;
  if (GetParam().name != "CartPole") {
    state.back() = 100;  // Every other task bounds its last velocity.
    expect_refused(bad, "state of lane 1: got 100, want [-");
  }
  RILL_ASSERT_OK_AND_ASSIGN(bad, good.Clone());
  bad.Flat<int64_t>("steps")->at(0) = 10;
  expect_refused(bad, "steps of lane 0: got 10, want [0, 9]");
  RILL_ASSERT_OK_AND_ASSIGN(bad, good.Clone());
  bad.Flat<int64_t>("episode")->at(1) = -1;
  expect_refused(bad, "episode of lane 1: got -1, want [0, ");
  bad.Flat<int64_t>("episode")->at(1) = INT64_MAX;  // There is no next one.
  expect_refused(bad, "episode of lane 1: got 9223372036854775807");
  RILL_ASSERT_OK_AND_ASSIGN(bad, good.Index(0));
  expect_refused(bad, "\"steps\": got int64[1], want int64[2, 1]");
  RILL_ASSERT_OK_AND_ASSIGN(bad, good.Exclude({"seed"}));
  expect_refused(bad, "seed");
}

TEST_P(ClassicControlTest, OptionsOutOfRangeAreNamed) {
  const std::string make = "Make" + GetParam().name + ": ";
  EXPECT_THAT(GetParam().make(0, 9, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(make + "lanes: got 0, want [1, ")));
  EXPECT_THAT(GetParam().make(1, -1, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(make + "max_episode_steps: got -1, want")));
}

INSTANTIATE_TEST_SUITE_P(Tasks, ClassicControlTest, testing::ValuesIn(Tasks()),
                         [](const auto& info) { return info.param.name; });

TEST(MountainCarTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeMountainCar({.lanes = 16, .seed = 1}));
  EXPECT_EQ(*env->spec().action.Find("action"), LeafSpec::Categorical(3));
}

TEST(MountainCarTest, BeginsAtRestInTheValley) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeMountainCar({.lanes = 1000}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(1000, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(auto both, env->step().Flat<float>("observation"));
  std::vector<float> x;
  for (int64_t lane = 0; lane < 1000; ++lane) {
    x.push_back(both[2 * lane]);
    EXPECT_EQ(both[2 * lane + 1], 0);
  }
  EXPECT_THAT(x, Each(AllOf(Ge(-0.6f), Le(-0.4f))));
  // Each misses once in 2e22: (1 - 1/20)^1000.
  EXPECT_THAT(x, Not(Each(Ge(-0.59f))));
  EXPECT_THAT(x, Not(Each(Lt(-0.41f))));
}

TEST(MountainCarContinuousTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeMountainCarContinuous({.lanes = 16}));
  EXPECT_EQ(*env->spec().action.Find("action"),
            LeafSpec::Bounded(DType::kFloat32, {1}, -1, 1));
}

TEST(MountainCarContinuousTest, RefusesStatesThatItNeverHas) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeMountainCarContinuous());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, env->SaveState());
  state.Flat<double>("state")->at(0) = -0.1;
  RILL_EXPECT_OK(env->LoadState(state));
  state.Flat<int64_t>("steps")->at(0) = 1;
  EXPECT_THAT(env->LoadState(state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("want a float32 after the first step")));
}

TEST(AcrobotTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeAcrobot({.lanes = 16, .seed = 1}));
  EXPECT_EQ(*env->spec().action.Find("action"), LeafSpec::Categorical(3));
}

TEST(PendulumTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakePendulum({.lanes = 16, .seed = 1}));
  EXPECT_EQ(*env->spec().action.Find("action"),
            LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2));
}

// The shortcuts of the remainder are fmod's values, and a pendulum costs the
// same a turn further.
TEST(PendulumTest, ManyTurnsAwayCostTheSame) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakePendulum({.lanes = 9}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(9, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, env->SaveState());
  for (int64_t lane = 0; lane < 9; ++lane) {
    const double turns = 2 * std::numbers::pi * static_cast<double>(lane - 4);
    state.Flat<double>("state")->at(2 * lane) = 1 + turns;
    state.Flat<double>("state")->at(2 * lane + 1) = 0;
  }
  RILL_ASSERT_OK(env->LoadState(state));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(env->step().Flat<float>("next/reward"),
              IsOkAndHolds(Each(-1.0f)));
}

TEST(PowTwoTest, IsLibmsPower) {
  volatile double two = 2;
  double x = 1e-170;
  for (int i = 0; i < 2'000'000; ++i) {
    x = x * 1.0003 + 1e-160;
    const double value = i % 2 == 0 ? x : -x;
    ASSERT_EQ(envs_internal::PowTwo(value), std::pow(value, two)) << value;
  }
  for (const double value : {0.0, -0.0, 1e-200, 1e160, -1e300}) {
    EXPECT_EQ(envs_internal::PowTwo(value), std::pow(value, two));
  }
}

INSTANTIATE_TEST_SUITE_P(
    ClassicControl, EnvConformanceTest,
    ::testing::Values([] { return MakeMountainCar({.lanes = 3}); },
                      [] {
                        return MakeMountainCarContinuous(
                            {.lanes = 3, .max_episode_steps = 50});
                      },
                      [] {
                        return MakeAcrobot(
                            {.lanes = 2, .max_episode_steps = 40});
                      },
                      [] { return MakePendulum({.lanes = 3}); },
                      [] { return MakePendulum({.max_episode_steps = 7}); }));

}  // namespace
}  // namespace rill
