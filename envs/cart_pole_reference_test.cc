// SPDX-License-Identifier: Apache-2.0
// CartPole against trajectories of the real gymnasium package: every field of
// every step, bit for bit.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/testing/reference_replay.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kStateSize = 4;
constexpr int64_t kSeeds = 3;
constexpr std::array kPatterns = {"random", "left",      "alternating",
                                  "blocks", "balancing", "drifting"};

// One file; the format is in testing/fixtures/cart_pole/README.md. With
// `initial_observation`, that gets the first one of each episode.
absl::StatusOr<ReferenceTrajectory> LoadTrajectory(
    const std::string& name,
    std::vector<float>* initial_observation = nullptr) {
  RILL_ASSIGN_OR_RETURN(
      const std::string bytes,
      ReadFile(absl::StrCat("testing/fixtures/cart_pole/", name, ".bin")));
  if (bytes.size() < 24 || bytes.compare(0, 8, "CARTPOL1") != 0) {
    return absl::DataLossError(absl::StrCat(name, ": not a trajectory"));
  }
  std::vector<int64_t> sizes;
  size_t offset = 8;
  TakeColumn(bytes, 2, &offset, &sizes);
  const int64_t steps = sizes[0];
  const int64_t episodes = sizes[1];
  if (static_cast<int64_t>(bytes.size()) != 24 + 56 * episodes + 59 * steps) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", bytes.size(), " bytes"));
  }
  ReferenceTrajectory t;
  t.state_size = t.observation_size = kStateSize;
  TakeColumn(bytes, episodes, &offset, &t.episode_start);
  TakeColumn(bytes, episodes * kStateSize, &offset, &t.initial_state);
  TakeColumn(bytes, steps * kStateSize, &offset, &t.state);
  TakeColumn(bytes, steps, &offset, &t.reward);
  std::vector<float> initial;
  TakeColumn(bytes, episodes * kStateSize, &offset, &initial);
  if (initial_observation != nullptr) *initial_observation = initial;
  TakeColumn(bytes, steps * kStateSize, &offset, &t.observation);
  TakeColumn(bytes, steps, &offset, &t.choice);
  TakeColumn(bytes, steps, &offset, &t.terminated);
  TakeColumn(bytes, steps, &offset, &t.truncated);
  return t;
}

class CartPoleReferenceTest : public testing::TestWithParam<const char*> {};

TEST_P(CartPoleReferenceTest, EqualsGymnasiumBitForBit) {
  for (int64_t seed = 0; seed < kSeeds; ++seed) {
    RILL_ASSERT_OK_AND_ASSIGN(
        ReferenceTrajectory trajectory,
        LoadTrajectory(absl::StrCat(GetParam(), "_", seed)));
    EXPECT_GE(trajectory.num_steps(), 1000);
    RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({}));
    ExpectStepsOf({trajectory}, env.get());
  }
}

TEST_P(CartPoleReferenceTest, InitialObservationsAreTheRoundedStates) {
  std::vector<float> observation;
  RILL_ASSERT_OK_AND_ASSIGN(
      ReferenceTrajectory trajectory,
      LoadTrajectory(absl::StrCat(GetParam(), "_0"), &observation));
  ASSERT_EQ(observation.size(), trajectory.initial_state.size());
  for (size_t i = 0; i < trajectory.initial_state.size(); ++i) {
    EXPECT_EQ(static_cast<float>(trajectory.initial_state[i]), observation[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, CartPoleReferenceTest,
                         testing::ValuesIn(kPatterns),
                         [](const auto& info) { return info.param; });

TEST(CartPoleLanesTest, ManyLanesEqualGymnasiumBitForBit) {
  std::vector<ReferenceTrajectory> trajectories;
  for (const char* pattern : kPatterns) {
    for (int64_t seed = 0; seed < kSeeds; ++seed) {
      RILL_ASSERT_OK_AND_ASSIGN(
          ReferenceTrajectory trajectory,
          LoadTrajectory(absl::StrCat(pattern, "_", seed)));
      trajectories.push_back(trajectory);
    }
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCartPole({.lanes = static_cast<int64_t>(trajectories.size())}));
  ExpectStepsOf(trajectories, env.get());
}

}  // namespace
}  // namespace rill
