// SPDX-License-Identifier: Apache-2.0
// Where the tasks' episodes end, at both ends of each range, to the last bit.
// Source: is_healthy and step of gymnasium 1.4.0, envs/mujoco/*_v5.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/mujoco/ant.h"
#include "rill/envs/mujoco/hopper.h"
#include "rill/envs/mujoco/humanoid.h"
#include "rill/envs/mujoco/inverted_pendulum.h"
#include "rill/envs/mujoco/walker2d.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using Range = std::pair<double, double>;
using Made = absl::StatusOr<std::unique_ptr<Env>>;

constexpr Range kEverything = {-HUGE_VAL, HUGE_VAL};
constexpr int kQpos = 1;  // In the state "lane/integration", behind the time.

// A step of the only lane from rest, with qpos[position] set to `value` where
// position >= 0.
struct Outcome {
  std::vector<double> state;  // After the step.
  bool terminated;
};
absl::StatusOr<Outcome> StepFromRest(Env& env, int position = -1,
                                     double value = 0) {
  RILL_RETURN_IF_ERROR(env.Reset(std::vector<uint8_t>{1}));
  if (position >= 0) {
    RILL_ASSIGN_OR_RETURN(const TensorDict saved, env.SaveState());
    RILL_ASSIGN_OR_RETURN(auto state, saved.Flat<double>("lane/integration"));
    state[kQpos + position] = value;
    RILL_RETURN_IF_ERROR(env.LoadState(saved));
  }
  RILL_ASSIGN_OR_RETURN(auto action, env.step().Flat<float>("action"));
  std::fill(action.begin(), action.end(), 0.0f);
  RILL_RETURN_IF_ERROR(env.Step());
  RILL_ASSIGN_OR_RETURN(const TensorDict after, env.SaveState());
  RILL_ASSIGN_OR_RETURN(auto state, after.Flat<double>("lane/integration"));
  RILL_ASSIGN_OR_RETURN(auto terminated,
                        env.step().Flat<bool>("next/terminated"));
  return Outcome{{state.begin(), state.end()}, terminated[0]};
}

// --- A range as an option, around what a step reaches ------------------------

struct Bound {
  std::string name;
  bool is_closed;
  int first, last;  // The values of the state that must be inside.
  std::function<Made(Range)> make;
};

class HealthyRangeTest : public testing::TestWithParam<Bound> {};

TEST_P(HealthyRangeTest, EndsAreInsideWhereGymnasiumsAre) {
  const Bound& bound = GetParam();
  const auto terminates = [&](double low, double high) {
    Made env = bound.make({low, high});
    RILL_EXPECT_OK(env);
    absl::StatusOr<Outcome> outcome = StepFromRest(**env);
    RILL_EXPECT_OK(outcome);
    return outcome->terminated;
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto env, bound.make(kEverything));
  RILL_ASSERT_OK_AND_ASSIGN(const Outcome reached, StepFromRest(*env));
  ASSERT_FALSE(reached.terminated);
  const auto [low, high] =
      std::minmax_element(reached.state.begin() + bound.first,
                          reached.state.begin() + bound.last + 1);
  const auto up = [](double x) { return std::nextafter(x, HUGE_VAL); };
  const auto down = [](double x) { return std::nextafter(x, -HUGE_VAL); };
  EXPECT_FALSE(terminates(down(*low), HUGE_VAL));
  EXPECT_EQ(terminates(*low, HUGE_VAL), !bound.is_closed);
  EXPECT_TRUE(terminates(up(*low), HUGE_VAL));
  EXPECT_FALSE(terminates(-HUGE_VAL, up(*high)));
  EXPECT_EQ(terminates(-HUGE_VAL, *high), !bound.is_closed);
  EXPECT_TRUE(terminates(-HUGE_VAL, down(*high)));
}

Made Hopper(Range state, Range z, Range angle) {
  return MakeHopper({.healthy_state_range = state,
                     .healthy_z_range = z,
                     .healthy_angle_range = angle,
                     .reset_noise_scale = 0});
}

Made Walker2d(Range z, Range angle) {
  return MakeWalker2d({.healthy_z_range = z,
                       .healthy_angle_range = angle,
                       .reset_noise_scale = 0});
}

INSTANTIATE_TEST_SUITE_P(
    All, HealthyRangeTest,
    testing::Values(
        Bound{"AntZ", true, kQpos + 2, kQpos + 2,
              [](Range z) {
                return MakeAnt({.healthy_z_range = z, .reset_noise_scale = 0});
              }},
        Bound{"HumanoidZ", false, kQpos + 2, kQpos + 2,
              [](Range z) {
                return MakeHumanoid(
                    {.healthy_z_range = z, .reset_noise_scale = 0});
              }},
        // qpos[2] to qpos[5], qvel[0] to qvel[5].
        Bound{"HopperState", false, kQpos + 2, kQpos + 11,
              [](Range state) {
                return Hopper(state, kEverything, kEverything);
              }},
        Bound{"HopperZ", false, kQpos + 1, kQpos + 1,
              [](Range z) { return Hopper(kEverything, z, kEverything); }},
        Bound{"HopperAngle", false, kQpos + 2, kQpos + 2,
              [](Range angle) {
                return Hopper(kEverything, kEverything, angle);
              }},
        Bound{"Walker2dZ", false, kQpos + 1, kQpos + 1,
              [](Range z) { return Walker2d(z, kEverything); }},
        Bound{"Walker2dAngle", false, kQpos + 2, kQpos + 2,
              [](Range angle) { return Walker2d(kEverything, angle); }}),
    [](const testing::TestParamInfo<Bound>& info) { return info.param.name; });

// --- The default ranges, by states on both sides of each end -----------------

struct Edge {
  Made (*make)();
  int position;
  double inside, outside;
};

template <typename Options, Made (*make)(const Options&)>
Made Still() {
  Options options;
  options.frame_skip = 1;
  options.reset_noise_scale = 0;
  return make(options);
}

TEST(HealthyDefaultsTest, StatesBeyondEachEndTerminate) {
  constexpr auto ant = &Still<AntOptions, MakeAnt>;
  constexpr auto humanoid = &Still<HumanoidOptions, MakeHumanoid>;
  constexpr auto hopper = &Still<HopperOptions, MakeHopper>;
  constexpr auto walker = &Still<Walker2dOptions, MakeWalker2d>;
  constexpr auto pendulum =
      &Still<InvertedPendulumOptions, MakeInvertedPendulum>;
  // A step moves them by less than the distance to the end. Hopper's 6 is
  // qvel[0].
  const Edge edges[] = {{ant, 2, 0.95, 1.05},       {ant, 2, 0.25, 0.15},
                        {humanoid, 2, 1.95, 2.05},  {humanoid, 2, 1.05, 0.95},
                        {hopper, 1, 0.75, 0.65},    {hopper, 2, 0.18, 0.22},
                        {hopper, 2, -0.18, -0.22},  {hopper, 6, 99, 101},
                        {hopper, 6, -99, -101},     {walker, 1, 1.95, 2.05},
                        {walker, 1, 0.85, 0.75},    {walker, 2, 0.95, 1.05},
                        {walker, 2, -0.95, -1.05},  {pendulum, 1, 0.19, 0.21},
                        {pendulum, 1, -0.19, -0.21}};
  for (const Edge& edge : edges) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env, edge.make());
    for (const double value : {edge.inside, edge.outside}) {
      SCOPED_TRACE(
          absl::StrCat(env->name(), ", qpos[", edge.position, "] = ", value));
      RILL_ASSERT_OK_AND_ASSIGN(const Outcome outcome,
                                StepFromRest(*env, edge.position, value));
      EXPECT_EQ(outcome.terminated, value == edge.outside)
          << outcome.state[kQpos + edge.position];
    }
  }
}

}  // namespace
}  // namespace rill
