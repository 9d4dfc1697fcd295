// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/testing/reference_replay.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAreArray;

// A row as bits, so that -0 and NaN count.
template <typename T>
auto Bits(const T* row, int64_t count) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  std::vector<Word> bits(count);
  for (int64_t i = 0; i < count; ++i) bits[i] = std::bit_cast<Word>(row[i]);
  return bits;
}

class Replay {
 public:
  Replay(const std::vector<ReferenceTrajectory>& trajectories, Env* env)
      : trajectories_(trajectories), env_(env), step_(env->step()) {}

  void Run() {
    int64_t steps = 0;
    for (const ReferenceTrajectory& t : trajectories_) {
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
      const ReferenceTrajectory& from = trajectories_[l];
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
    const ReferenceTrajectory& from = trajectories_[lane];
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
      const ReferenceTrajectory& want = trajectories_[l];
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

  const std::vector<ReferenceTrajectory>& trajectories_;
  Env* const env_;
  TensorDict step_;
};

}  // namespace

void ExpectStepsOf(const std::vector<ReferenceTrajectory>& trajectories,
                   Env* env) {
  Replay(trajectories, env).Run();
}

}  // namespace rill
