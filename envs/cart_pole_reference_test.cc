// SPDX-License-Identifier: Apache-2.0
// CartPole against trajectories of the real gymnasium package: every field of
// every step, bit for bit.
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
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAreArray;
using ::testing::Ge;

constexpr int64_t kStateSize = 4;
constexpr int64_t kSeeds = 3;
constexpr std::array kPatterns = {"random", "left",      "alternating",
                                  "blocks", "balancing", "drifting"};

// One file; the format is in testing/fixtures/cart_pole/README.md.
struct Trajectory {
  std::vector<int64_t> episode_start;
  std::vector<double> initial_state;
  std::vector<double> state;
  std::vector<double> reward;
  std::vector<float> initial_observation;
  std::vector<float> observation;
  std::vector<uint8_t> action;
  std::vector<uint8_t> terminated;
  std::vector<uint8_t> truncated;

  int64_t num_steps() const { return static_cast<int64_t>(action.size()); }
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
      ReadFile(absl::StrCat("testing/fixtures/cart_pole/", name, ".bin")));
  if (bytes.size() < 24 || bytes.compare(0, 8, "CARTPOL1") != 0) {
    return absl::DataLossError(absl::StrCat(name, ": not a trajectory"));
  }
  std::vector<int64_t> sizes;
  size_t offset = 8;
  Take(bytes, 2, &offset, &sizes);
  const int64_t steps = sizes[0];
  const int64_t episodes = sizes[1];
  if (static_cast<int64_t>(bytes.size()) != 24 + 56 * episodes + 59 * steps) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", bytes.size(), " bytes"));
  }
  Trajectory t;
  Take(bytes, episodes, &offset, &t.episode_start);
  Take(bytes, episodes * kStateSize, &offset, &t.initial_state);
  Take(bytes, steps * kStateSize, &offset, &t.state);
  Take(bytes, steps, &offset, &t.reward);
  Take(bytes, episodes * kStateSize, &offset, &t.initial_observation);
  Take(bytes, steps * kStateSize, &offset, &t.observation);
  Take(bytes, steps, &offset, &t.action);
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

// Runs lane l along trajectories[l], all at once, and compares every field.
class Replay {
 public:
  explicit Replay(std::vector<Trajectory> trajectories)
      : trajectories_(std::move(trajectories)),
        lanes_(static_cast<int64_t>(trajectories_.size())),
        episode_(lanes_, 0) {}

  void Run() {
    RILL_ASSERT_OK_AND_ASSIGN(env_, MakeCartPole({.lanes = lanes_}));
    step_ = env_->step();
    int64_t steps = trajectories_[0].num_steps();
    for (const Trajectory& t : trajectories_) {
      steps = std::min(steps, t.num_steps());
    }
    ASSERT_THAT(steps, Ge(1000));
    for (int64_t t = 0; t < steps && !testing::Test::HasFailure(); ++t) {
      BeginEpisodes(t);
      RILL_ASSERT_OK_AND_ASSIGN(auto action, step_.Flat<int64_t>("action"));
      for (int64_t l = 0; l < lanes_; ++l) {
        action[l] = trajectories_[l].action[t];
      }
      RILL_ASSERT_OK(env_->Step());
      Compare(t);
    }
  }

 private:
  // Lanes whose recorded episode begins at `t` get its initial state.
  void BeginEpisodes(int64_t t) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict saved, env_->SaveState());
    RILL_ASSERT_OK_AND_ASSIGN(auto state, saved.Flat<double>("state"));
    RILL_ASSERT_OK_AND_ASSIGN(auto steps, saved.Flat<int64_t>("steps"));
    RILL_ASSERT_OK_AND_ASSIGN(auto running, saved.Flat<bool>("running"));
    for (int64_t l = 0; l < lanes_; ++l) {
      const Trajectory& trajectory = trajectories_[l];
      const auto next = static_cast<size_t>(episode_[l]);
      if (next >= trajectory.episode_start.size() ||
          trajectory.episode_start[next] != t) {
        continue;
      }
      ++episode_[l];
      const double* initial = trajectory.initial_state.data() +
                              static_cast<int64_t>(next) * kStateSize;
      std::copy_n(initial, kStateSize, state.data() + l * kStateSize);
      steps[l] = 0;
      running[l] = true;
    }
    RILL_ASSERT_OK(env_->LoadState(saved));
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
    for (int64_t l = 0; l < lanes_; ++l) {
      SCOPED_TRACE(absl::StrCat("step ", t, ", lane ", l));
      const Trajectory& want = trajectories_[l];
      EXPECT_THAT(
          Bits(&state[l * kStateSize], kStateSize),
          ElementsAreArray(Bits(&want.state[t * kStateSize], kStateSize)));
      EXPECT_THAT(Bits(&observation[l * kStateSize], kStateSize),
                  ElementsAreArray(
                      Bits(&want.observation[t * kStateSize], kStateSize)));
      EXPECT_EQ(double{reward[l]}, want.reward[t]);
      EXPECT_EQ(terminated[l], want.terminated[t] != 0);
      EXPECT_EQ(truncated[l], want.truncated[t] != 0);
      EXPECT_EQ(done[l], want.terminated[t] != 0 || want.truncated[t] != 0);
    }
  }

  std::vector<Trajectory> trajectories_;
  int64_t lanes_;
  std::vector<int64_t> episode_;  // Of each lane, the one to begin next.
  std::unique_ptr<Env> env_;
  TensorDict step_;
};

class CartPoleReferenceTest : public testing::TestWithParam<const char*> {};

TEST_P(CartPoleReferenceTest, EqualsGymnasiumBitForBit) {
  for (int64_t seed = 0; seed < kSeeds; ++seed) {
    RILL_ASSERT_OK_AND_ASSIGN(
        Trajectory trajectory,
        LoadTrajectory(absl::StrCat(GetParam(), "_", seed)));
    Replay({trajectory}).Run();
  }
}

TEST_P(CartPoleReferenceTest, InitialObservationsAreTheRoundedStates) {
  RILL_ASSERT_OK_AND_ASSIGN(Trajectory trajectory,
                            LoadTrajectory(absl::StrCat(GetParam(), "_0")));
  for (size_t i = 0; i < trajectory.initial_state.size(); ++i) {
    EXPECT_EQ(static_cast<float>(trajectory.initial_state[i]),
              trajectory.initial_observation[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, CartPoleReferenceTest,
                         testing::ValuesIn(kPatterns),
                         [](const auto& info) { return info.param; });

TEST(CartPoleLanesTest, ManyLanesEqualGymnasiumBitForBit) {
  std::vector<Trajectory> trajectories;
  for (const char* pattern : kPatterns) {
    for (int64_t seed = 0; seed < kSeeds; ++seed) {
      RILL_ASSERT_OK_AND_ASSIGN(
          Trajectory trajectory,
          LoadTrajectory(absl::StrCat(pattern, "_", seed)));
      trajectories.push_back(trajectory);
    }
  }
  Replay(trajectories).Run();
}

}  // namespace
}  // namespace rill
