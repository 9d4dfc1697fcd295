// SPDX-License-Identifier: Apache-2.0
// CartPole and classic control against trajectories of the real gymnasium
// package: every field of every step, bit for bit.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/env.h"
#include "rill/envs/testing/reference_replay.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAreArray;

// One file; the formats are in testing/fixtures/cart_pole/README.md and
// testing/fixtures/classic_control/README.md. Those of CartPole do not say
// their sizes, and have the first observation of each episode.
absl::StatusOr<ReferenceTrajectory> LoadTrajectory(const std::string& name) {
  RILL_ASSIGN_OR_RETURN(
      const std::string bytes,
      ReadFile(absl::StrCat("testing/fixtures/", name, ".bin")));
  const bool is_cart_pole = absl::StartsWith(bytes, "CARTPOL1");
  const size_t header = is_cart_pole ? 24 : 48;
  if (bytes.size() < header ||
      !(is_cart_pole || absl::StartsWith(bytes, "CLASSIC1"))) {
    return absl::DataLossError(absl::StrCat(name, ": not a trajectory"));
  }
  std::vector<int64_t> sizes;
  size_t offset = 8;
  TakeColumn(bytes, is_cart_pole ? 2 : 5, &offset, &sizes);
  if (is_cart_pole) sizes.insert(sizes.end(), {4, 4, 1});
  const auto [steps, episodes, state_size, observation_size, action_size] =
      std::array{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]};
  const int64_t first_size = is_cart_pole ? observation_size : 0;
  const int64_t want =
      static_cast<int64_t>(header) +
      episodes * (8 + 8 * state_size + 4 * first_size) +
      steps * (8 * state_size + 8 + 4 * observation_size + action_size + 2);
  if (static_cast<int64_t>(bytes.size()) != want) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", bytes.size(), " bytes, want ", want));
  }
  ReferenceTrajectory t;
  t.state_size = state_size;
  t.observation_size = observation_size;
  TakeColumn(bytes, episodes, &offset, &t.episode_start);
  TakeColumn(bytes, episodes * state_size, &offset, &t.initial_state);
  TakeColumn(bytes, steps * state_size, &offset, &t.state);
  TakeColumn(bytes, steps, &offset, &t.reward);
  TakeColumn(bytes, episodes * first_size, &offset, &t.initial_observation);
  TakeColumn(bytes, steps * observation_size, &offset, &t.observation);
  if (action_size == 4) {
    TakeColumn(bytes, steps, &offset, &t.force);
  } else {
    TakeColumn(bytes, steps, &offset, &t.choice);
  }
  TakeColumn(bytes, steps, &offset, &t.terminated);
  TakeColumn(bytes, steps, &offset, &t.truncated);
  return t;
}

struct Task {
  std::string name;
  int64_t least_steps = 0;  // Of each file.
  std::string files;        // Begins their names.
  std::vector<std::string> patterns;
  absl::StatusOr<std::unique_ptr<Env>> (*make)(int64_t lanes);
};

class ClassicReferenceTest : public testing::TestWithParam<Task> {};

TEST_P(ClassicReferenceTest, EqualsGymnasiumBitForBit) {
  std::vector<ReferenceTrajectory> all;
  for (const std::string& pattern : GetParam().patterns) {
    SCOPED_TRACE(pattern);
    RILL_ASSERT_OK_AND_ASSIGN(
        const ReferenceTrajectory trajectory,
        LoadTrajectory(absl::StrCat(GetParam().files, pattern)));
    EXPECT_GE(trajectory.num_steps(), GetParam().least_steps);
    RILL_ASSERT_OK_AND_ASSIGN(auto alone, GetParam().make(1));
    ExpectStepsOf({trajectory}, alone.get());
    all.push_back(trajectory);
  }
  SCOPED_TRACE("as lanes");
  const auto lanes = static_cast<int64_t>(all.size());
  RILL_ASSERT_OK_AND_ASSIGN(auto together, GetParam().make(lanes));
  ExpectStepsOf(all, together.get());
}

// Three seeds of each of these.
std::vector<std::string> CartPolePatterns() {
  std::vector<std::string> patterns;
  for (const char* name :
       {"random", "left", "alternating", "blocks", "balancing", "drifting"}) {
    for (int seed = 0; seed < 3; ++seed) {
      patterns.push_back(absl::StrCat(name, "_", seed));
    }
  }
  return patterns;
}

// An observation of CartPole is its state, rounded.
TEST(CartPoleReferenceTest, InitialObservationsAreTheRoundedStates) {
  for (const std::string& pattern : CartPolePatterns()) {
    SCOPED_TRACE(pattern);
    RILL_ASSERT_OK_AND_ASSIGN(
        const ReferenceTrajectory trajectory,
        LoadTrajectory(absl::StrCat("cart_pole/", pattern)));
    const std::vector<double>& state = trajectory.initial_state;
    EXPECT_FALSE(state.empty());
    EXPECT_THAT(
        trajectory.initial_observation,
        ElementsAreArray(std::vector<float>(state.begin(), state.end())));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tasks, ClassicReferenceTest,
    testing::Values(
        Task{"cart_pole", 1000, "cart_pole/", CartPolePatterns(),
             [](int64_t lanes) { return MakeCartPole({.lanes = lanes}); }},
        Task{"mountain_car",
             100,
             "classic_control/mountain_car_",
             {"random", "pump", "left_wall"},
             [](int64_t lanes) { return MakeMountainCar({.lanes = lanes}); }},
        Task{"mountain_car_continuous",
             100,
             "classic_control/mountain_car_continuous_",
             {"random", "pump", "left_wall"},
             [](int64_t lanes) {
               return MakeMountainCarContinuous({.lanes = lanes});
             }},
        Task{"acrobot",
             100,
             "classic_control/acrobot_",
             {"random", "pump", "fast"},
             [](int64_t lanes) { return MakeAcrobot({.lanes = lanes}); }},
        Task{"pendulum",
             100,
             "classic_control/pendulum_",
             {"random", "swing_up", "spin"},
             [](int64_t lanes) { return MakePendulum({.lanes = lanes}); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rill
