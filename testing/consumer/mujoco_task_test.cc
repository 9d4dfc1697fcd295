// SPDX-License-Identifier: Apache-2.0

// A MuJoCo model of this project, with a reward, as an environment of Rill.

#include <cmath>

#include "gtest/gtest.h"
#include "rill/envs/mujoco/mujoco_env.h"
#include "rill/envs/mujoco/mujoco_model.h"
#include "rill/envs/mujoco/reset_noise.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/rollout.h"

namespace {

constexpr char kRover[] = R"(
<mujoco>
  <worldbody>
    <body>
      <joint name="drive" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.2 0.1 0.1" mass="5"/>
    </body>
  </worldbody>
  <actuator><motor joint="drive" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>)";

TEST(MujocoTaskTest, ATaskOfThisProjectIsRolledOut) {
  auto model = rill::ParseMujocoModel(kRover);
  ASSERT_TRUE(model.ok()) << model.status();
  const rill::MujocoTask task = {
      .name = "Rover",
      .reward = [](const rill::MujocoStep& step) -> rill::MujocoOutcome {
        return {.reward = -std::abs(step.data.qpos[0] - 1)};
      },
      .reset = rill::ResetNoise({.scale = 0.1}),
  };
  auto env = rill::MakeMujocoEnv(*model, task, {.lanes = 4, .frame_skip = 5});
  ASSERT_TRUE(env.ok()) << env.status();
  auto policy = rill::MakeRandomPolicy((*env)->spec());
  ASSERT_TRUE(policy.ok()) << policy.status();
  auto steps = rill::Rollout(**env, **policy, {.max_steps = 10});
  ASSERT_TRUE(steps.ok()) << steps.status();
  auto position = steps->Flat<double>("next/observation");
  auto reward = steps->Flat<float>("next/reward");
  ASSERT_TRUE(position.ok() && reward.ok());
  ASSERT_EQ(reward->size(), 4 * 10);
  for (size_t i = 0; i < reward->size(); ++i) {
    EXPECT_EQ((*reward)[i],
              static_cast<float>(-std::abs((*position)[2 * i] - 1)));
  }
}

}  // namespace
