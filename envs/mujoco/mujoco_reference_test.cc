// SPDX-License-Identifier: Apache-2.0
// Gymnasium's tasks against steps of the real gymnasium package: equal states
// and actions give its observations, rewards and ends.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/envs/env.h"
#include "rill/envs/mujoco/ant.h"
#include "rill/envs/mujoco/half_cheetah.h"
#include "rill/envs/mujoco/hopper.h"
#include "rill/envs/mujoco/humanoid.h"
#include "rill/envs/mujoco/inverted_pendulum.h"
#include "rill/envs/mujoco/walker2d.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Eq;
using ::testing::Ge;
using ::testing::SizeIs;

constexpr double kTolerance = 1e-8;

// One file; the format is in testing/fixtures/mujoco/README.md.
class Recording {
 public:
  explicit Recording(const std::string& file) {
    const char* const folder = std::getenv("RILL_MUJOCO_FIXTURES");
    auto bytes = ReadFile(
        JoinPath(folder == nullptr ? "testing/fixtures/mujoco" : folder, file));
    if (bytes.ok()) bytes_ = *bytes;
  }
  template <typename T>
  std::vector<T> Take(int64_t count) {
    std::vector<T> values(count);
    if (at_ + count * sizeof(T) <= bytes_.size()) {
      std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    }
    at_ += count * sizeof(T);
    return values;
  }
  size_t size() const { return bytes_.size(); }
  size_t at() const { return at_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

// The greatest distance of two rows, relative where values are large.
double Distance(absl::Span<const double> a, absl::Span<const double> b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    if (!(d <= distance)) distance = d;
  }
  return distance;
}

struct Case {
  std::string file;
  std::function<absl::StatusOr<std::unique_ptr<Env>>(double noise)> make;
};

class MujocoReferenceTest : public testing::TestWithParam<Case> {
 protected:
  // Puts a state, and the position before its step, into the only lane.
  void SetState(absl::Span<const double> state, double position) {
    RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1}));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict saved, env_->SaveState());
    RILL_ASSERT_OK_AND_ASSIGN(auto integration,
                              saved.Flat<double>("lane/integration"));
    ASSERT_THAT(integration, SizeIs(state.size()));
    std::copy(state.begin(), state.end(), integration.begin());
    RILL_ASSERT_OK_AND_ASSIGN(auto place, saved.Flat<double>("lane/position"));
    place[0] = position;
    RILL_ASSERT_OK(env_->LoadState(saved));
  }
  void CompareSegment(Recording* recording, int64_t state_size,
                      int64_t num_actions, int64_t observation_size);

  std::unique_ptr<Env> env_;
  int64_t steps_ = 0;
};

void MujocoReferenceTest::CompareSegment(Recording* recording,
                                         int64_t state_size,
                                         int64_t num_actions,
                                         int64_t observation_size) {
  const int64_t steps = recording->Take<int64_t>(1)[0];
  const auto state = recording->Take<double>(state_size);
  SetState(state, recording->Take<double>(1)[0]);
  const auto actions = recording->Take<float>(steps * num_actions);
  const auto observations = recording->Take<double>(steps * observation_size);
  const auto rewards = recording->Take<double>(steps);
  const auto ends = recording->Take<uint8_t>(steps);
  RILL_ASSERT_OK_AND_ASSIGN(auto action, env_->step().Flat<float>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(auto next,
                            env_->step().Flat<double>("next/observation"));
  RILL_ASSERT_OK_AND_ASSIGN(auto reward,
                            env_->step().Flat<float>("next/reward"));
  RILL_ASSERT_OK_AND_ASSIGN(auto terminated,
                            env_->step().Flat<bool>("next/terminated"));
  ASSERT_THAT(action, SizeIs(num_actions));
  for (int64_t t = 0; t < steps; ++t) {
    SCOPED_TRACE(absl::StrCat("step ", t));
    std::copy_n(actions.begin() + t * num_actions, num_actions, action.begin());
    RILL_ASSERT_OK(env_->Step());
    const absl::Span<const double> want =
        absl::MakeSpan(observations)
            .subspan(t * observation_size, observation_size);
    EXPECT_LE(Distance(next, want), kTolerance);
    // Rewards are float32 here: the nearest one, or the next where the double
    // is between two.
    const auto nearest = static_cast<float>(rewards[t]);
    const double ulp =
        std::abs(std::nextafter(nearest, HUGE_VALF) - double{nearest});
    EXPECT_LE(std::abs(reward[0] - rewards[t]), ulp / 2 + kTolerance);
    EXPECT_THAT(terminated[0], Eq(ends[t] != 0));
    ++steps_;
  }
}

TEST_P(MujocoReferenceTest, StepsEqualGymnasiums) {
  Recording recording(absl::StrCat(GetParam().file, ".bin"));
  const auto magic = recording.Take<char>(8);
  ASSERT_THAT(std::string(magic.begin(), magic.end()), Eq("MUJOCOS1"));
  const auto sizes = recording.Take<int64_t>(4);
  const auto still = recording.Take<double>(sizes[2]);

  RILL_ASSERT_OK_AND_ASSIGN(env_, GetParam().make(/*noise=*/0));
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto root,
                            env_->step().Flat<double>("observation"));
  EXPECT_LE(Distance(root, still), kTolerance);
  for (int64_t segment = 0; segment < sizes[3] && !HasFailure(); ++segment) {
    SCOPED_TRACE(absl::StrCat("segment ", segment));
    CompareSegment(&recording, sizes[0], sizes[1], sizes[2]);
  }
  EXPECT_THAT(recording.at(), Eq(recording.size()));
  EXPECT_THAT(steps_, Ge(3));
}

template <typename Options>
Case Default(const char* file,
             absl::StatusOr<std::unique_ptr<Env>> (*make)(const Options&)) {
  return {file, [make](double noise) {
            Options options;
            options.reset_noise_scale = noise;
            return make(options);
          }};
}

Case HopperOthers() {
  return {"Hopper-v5_options", [](double noise) {
            return MakeHopper(
                {.frame_skip = 2,
                 .forward_reward_weight = 2,
                 .ctrl_cost_weight = 0.25,
                 .healthy_reward = 0.5,
                 .terminate_when_unhealthy = false,
                 .healthy_state_range = {-3, 3},
                 .healthy_z_range = {1.0, 1.3},
                 .healthy_angle_range = {-0.05, 0.05},
                 .reset_noise_scale = noise,
                 .exclude_current_positions_from_observation = false});
          }};
}

Case HalfCheetahOthers() {
  return {"HalfCheetah-v5_options", [](double noise) {
            return MakeHalfCheetah(
                {.frame_skip = 2,
                 .forward_reward_weight = 2,
                 .ctrl_cost_weight = 0.25,
                 .reset_noise_scale = noise,
                 .exclude_current_positions_from_observation = false});
          }};
}

Case Walker2dOthers() {
  return {"Walker2d-v5_options", [](double noise) {
            return MakeWalker2d(
                {.frame_skip = 2,
                 .forward_reward_weight = 2,
                 .ctrl_cost_weight = 0.25,
                 .healthy_reward = 0.5,
                 .terminate_when_unhealthy = false,
                 .healthy_z_range = {1.2, 1.3},
                 .healthy_angle_range = {-0.1, 0.1},
                 .reset_noise_scale = noise,
                 .exclude_current_positions_from_observation = false});
          }};
}

Case AntOthers() {
  return {"Ant-v5_options", [](double noise) {
            return MakeAnt({.frame_skip = 2,
                            .forward_reward_weight = 2,
                            .ctrl_cost_weight = 0.25,
                            .contact_cost_weight = 0.01,
                            .healthy_reward = 0.5,
                            .main_body = 3,
                            .healthy_z_range = {0.66, 0.85},
                            .contact_force_range = {-0.5, 2},
                            .reset_noise_scale = noise,
                            .exclude_current_positions_from_observation = false,
                            .include_cfrc_ext_in_observation = false});
          }};
}

Case HumanoidOthers() {
  return {"Humanoid-v5_options", [](double noise) {
            return MakeHumanoid(
                {.frame_skip = 2,
                 .forward_reward_weight = 2,
                 .ctrl_cost_weight = 0.25,
                 .contact_cost_weight = 0.01,
                 .contact_cost_range = {0.5, 3},
                 .healthy_reward = 0.5,
                 .terminate_when_unhealthy = false,
                 .healthy_z_range = {1.2, 1.5},
                 .reset_noise_scale = noise,
                 .exclude_current_positions_from_observation = false,
                 .include_cinert_in_observation = false,
                 .include_cvel_in_observation = false,
                 .include_qfrc_actuator_in_observation = false,
                 .include_cfrc_ext_in_observation = false});
          }};
}

Case InvertedPendulumOthers() {
  return {"InvertedPendulum-v5_options", [](double noise) {
            return MakeInvertedPendulum(
                {.frame_skip = 1, .reset_noise_scale = noise});
          }};
}

INSTANTIATE_TEST_SUITE_P(
    All, MujocoReferenceTest,
    testing::Values(Default("Hopper-v5", MakeHopper), HopperOthers(),
                    Default("HalfCheetah-v5", MakeHalfCheetah),
                    HalfCheetahOthers(), Default("Walker2d-v5", MakeWalker2d),
                    Walker2dOthers(), Default("Ant-v5", MakeAnt), AntOthers(),
                    Default("Humanoid-v5", MakeHumanoid), HumanoidOthers(),
                    Default("InvertedPendulum-v5", MakeInvertedPendulum),
                    InvertedPendulumOthers()),
    [](const testing::TestParamInfo<Case>& info) {
      std::string name = info.param.file;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace rill
