// SPDX-License-Identifier: Apache-2.0
// Classic control against trajectories of the real gymnasium package: every
// field of every step, bit for bit.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/classic_control/mountain_car.h"
#include "rill/envs/classic_control/mountain_car_continuous.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAreArray;

// One file; the format is in testing/fixtures/classic_control/README.md.
struct Trajectory {
  int64_t state_size = 0;
  int64_t observation_size = 0;
  std::vector<int64_t> episode_start;
  std::vector<double> initial_state;
  std::vector<double> state;
  std::vector<double> reward;
  std::vector<float> observation;
  std::vector<uint8_t> choice;  // One of these two is empty.
  std::vector<float> force;
  std::vector<uint8_t> terminated;
  std::vector<uint8_t> truncated;

  int64_t num_steps() const { return static_cast<int64_t>(reward.size()); }
};

template <typename T>
void Take(const std::string& bytes, int64_t count, size_t* offset,
          std::vector<T>* column) {
  column->resize(count);
  std::memcpy(column->data(), bytes.data() + *offset, count * sizeof(T));
  *offset += count * sizeof(T);
}

absl::StatusOr<Trajectory> LoadTrajectory(const std::string& name) {
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
  Take(bytes, 5, &offset, &sizes);
  const auto [steps, episodes, state_size, observation_size, action_size] =
      std::array{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]};
  const int64_t want =
      static_cast<int64_t>(kHeader) + 8 * episodes * (1 + state_size) +
      steps * (8 * state_size + 8 + 4 * observation_size + action_size + 2);
  if (static_cast<int64_t>(bytes.size()) != want) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", bytes.size(), " bytes, want ", want));
  }
  Trajectory t;
  t.state_size = state_size;
  t.observation_size = observation_size;
  Take(bytes, episodes, &offset, &t.episode_start);
  Take(bytes, episodes * state_size, &offset, &t.initial_state);
  Take(bytes, steps * state_size, &offset, &t.state);
  Take(bytes, steps, &offset, &t.reward);
  Take(bytes, steps * observation_size, &offset, &t.observation);
  if (action_size == 4) {
    Take(bytes, steps, &offset, &t.force);
  } else {
    Take(bytes, steps, &offset, &t.choice);
  }
  Take(bytes, steps, &offset, &t.terminated);
  Take(bytes, steps, &offset, &t.truncated);
  return t;
}

// A row as bits, so that -0 and NaN count.
template <typename T>
auto Bits(const T* row, int64_t count) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  std::vector<Word> bits(count);
  for (int64_t i = 0; i < count; ++i) bits[i] = std::bit_cast<Word>(row[i]);
  return bits;
}

// Runs lane l along trajectories[l], all at once, and compares every field. A
// lane at the end of its trajectory begins it anew.
class Replay {
 public:
  Replay(std::unique_ptr<Env> env, std::vector<Trajectory> trajectories)
      : env_(std::move(env)),
        step_(env_->step()),
        trajectories_(std::move(trajectories)) {}

  void Run() {
    int64_t steps = 0;
    for (const Trajectory& t : trajectories_) {
      steps = std::max(steps, t.num_steps());
    }
    for (int64_t t = 0; t < steps && !testing::Test::HasFailure(); ++t) {
      BeginEpisodes(t);
      for (int64_t l = 0; l < env_->lanes(); ++l) Act(l, Position(l, t));
      RILL_ASSERT_OK(env_->Step());
      Compare(t);
    }
  }

 private:
  int64_t Position(int64_t lane, int64_t t) const {
    return t % trajectories_[lane].num_steps();
  }

  // Lanes whose recorded episode begins at `t` get its initial state.
  void BeginEpisodes(int64_t t) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict saved, env_->SaveState());
    RILL_ASSERT_OK_AND_ASSIGN(auto state, saved.Flat<double>("state"));
    RILL_ASSERT_OK_AND_ASSIGN(auto steps, saved.Flat<int64_t>("steps"));
    RILL_ASSERT_OK_AND_ASSIGN(auto running, saved.Flat<bool>("running"));
    for (int64_t l = 0; l < env_->lanes(); ++l) {
      const Trajectory& from = trajectories_[l];
      const auto start = std::find(from.episode_start.begin(),
                                   from.episode_start.end(), Position(l, t));
      if (start == from.episode_start.end()) continue;
      const int64_t size = from.state_size;
      std::copy_n(from.initial_state.data() +
                      (start - from.episode_start.begin()) * size,
                  size, state.data() + l * size);
      steps[l] = 0;
      running[l] = true;
    }
    RILL_ASSERT_OK(env_->LoadState(saved));
  }

  void Act(int64_t lane, int64_t at) {
    const Trajectory& from = trajectories_[lane];
    if (from.force.empty()) {
      RILL_ASSERT_OK_AND_ASSIGN(auto action, step_.Flat<int64_t>("action"));
      action[lane] = from.choice[at];
    } else {
      RILL_ASSERT_OK_AND_ASSIGN(auto action, step_.Flat<float>("action"));
      action[lane] = from.force[at];
    }
  }

  void Compare(int64_t t) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict saved, env_->SaveState());
    RILL_ASSERT_OK_AND_ASSIGN(auto state, saved.Flat<double>("state"));
    RILL_ASSERT_OK_AND_ASSIGN(auto observation,
                              step_.Flat<float>("next/observation"));
    RILL_ASSERT_OK_AND_ASSIGN(auto reward, step_.Flat<float>("next/reward"));
    RILL_ASSERT_OK_AND_ASSIGN(auto terminated,
                              step_.Flat<bool>("next/terminated"));
    RILL_ASSERT_OK_AND_ASSIGN(auto truncated,
                              step_.Flat<bool>("next/truncated"));
    RILL_ASSERT_OK_AND_ASSIGN(auto done, step_.Flat<bool>("next/done"));
    for (int64_t l = 0; l < env_->lanes(); ++l) {
      SCOPED_TRACE(absl::StrCat("step ", t, ", lane ", l));
      const Trajectory& want = trajectories_[l];
      const int64_t at = Position(l, t);
      const int64_t size = want.state_size;
      const int64_t observed = want.observation_size;
      EXPECT_THAT(Bits(&state[l * size], size),
                  ElementsAreArray(Bits(&want.state[at * size], size)));
      EXPECT_THAT(
          Bits(&observation[l * observed], observed),
          ElementsAreArray(Bits(&want.observation[at * observed], observed)));
      const auto rounded = static_cast<float>(want.reward[at]);
      EXPECT_EQ(Bits(&reward[l], 1), Bits(&rounded, 1));
      EXPECT_EQ(terminated[l], want.terminated[at] != 0);
      EXPECT_EQ(truncated[l], want.truncated[at] != 0);
      EXPECT_EQ(done[l], want.terminated[at] != 0 || want.truncated[at] != 0);
    }
  }

  std::unique_ptr<Env> env_;
  TensorDict step_;
  std::vector<Trajectory> trajectories_;
};

struct Task {
  std::string name;
  std::vector<std::string> patterns;
  absl::StatusOr<std::unique_ptr<Env>> (*make)(int64_t lanes);
};

class ClassicReferenceTest : public testing::TestWithParam<Task> {};

TEST_P(ClassicReferenceTest, EqualsGymnasiumBitForBit) {
  std::vector<Trajectory> all;
  for (const std::string& pattern : GetParam().patterns) {
    SCOPED_TRACE(pattern);
    RILL_ASSERT_OK_AND_ASSIGN(
        const Trajectory trajectory,
        LoadTrajectory(absl::StrCat(GetParam().name, "_", pattern)));
    RILL_ASSERT_OK_AND_ASSIGN(auto alone, GetParam().make(1));
    Replay(std::move(alone), {trajectory}).Run();
    all.push_back(trajectory);
  }
  SCOPED_TRACE("as lanes");
  const auto lanes = static_cast<int64_t>(all.size());
  RILL_ASSERT_OK_AND_ASSIGN(auto together, GetParam().make(lanes));
  Replay(std::move(together), all).Run();
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
