// SPDX-License-Identifier: Apache-2.0
// Classic control against trajectories of the real gymnasium package: every
// field of every step, bit for bit.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/env.h"
#include "rill/envs/testing/reference_replay.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// One file; the format is in testing/fixtures/classic_control/README.md.
absl::StatusOr<ReferenceTrajectory> LoadTrajectory(const std::string& name) {
  RILL_ASSIGN_OR_RETURN(
      const std::string bytes,
      ReadFile(
          absl::StrCat("testing/fixtures/classic_control/", name, ".bin")));
  constexpr size_t kHeader = 48;
  if (bytes.size() < kHeader || bytes.compare(0, 8, "CLASSIC1") != 0) {
    return absl::DataLossError(absl::StrCat(name, ": not a trajectory"));
  }
  std::vector<int64_t> sizes;
  size_t offset = 8;
  TakeColumn(bytes, 5, &offset, &sizes);
  const auto [steps, episodes, state_size, observation_size, action_size] =
      std::array{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]};
  const int64_t want =
      static_cast<int64_t>(kHeader) + 8 * episodes * (1 + state_size) +
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
        LoadTrajectory(absl::StrCat(GetParam().name, "_", pattern)));
    RILL_ASSERT_OK_AND_ASSIGN(auto alone, GetParam().make(1));
    ExpectStepsOf({trajectory}, alone.get());
    all.push_back(trajectory);
  }
  SCOPED_TRACE("as lanes");
  const auto lanes = static_cast<int64_t>(all.size());
  RILL_ASSERT_OK_AND_ASSIGN(auto together, GetParam().make(lanes));
  ExpectStepsOf(all, together.get());
}

INSTANTIATE_TEST_SUITE_P(
    Tasks, ClassicReferenceTest,
    testing::Values(
        Task{"mountain_car",
             {"random", "pump", "left_wall"},
             [](int64_t lanes) { return MakeMountainCar({.lanes = lanes}); }},
        Task{"mountain_car_continuous",
             {"random", "pump", "left_wall"},
             [](int64_t lanes) {
               return MakeMountainCarContinuous({.lanes = lanes});
             }},
        Task{"acrobot",
             {"random", "pump", "fast"},
             [](int64_t lanes) { return MakeAcrobot({.lanes = lanes}); }},
        Task{"pendulum",
             {"random", "swing_up", "spin"},
             [](int64_t lanes) { return MakePendulum({.lanes = lanes}); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rill
