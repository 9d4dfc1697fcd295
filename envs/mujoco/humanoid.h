// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_HUMANOID_H_
#define RILL_ENVS_MUJOCO_HUMANOID_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's Humanoid-v5: a robot with legs and arms is to walk forwards.
// Reward: forward_reward_weight * x velocity of the centre of mass
// + healthy_reward where healthy - ctrl_cost_weight * sum of ctrl^2
// - contact_cost_weight * sum of cfrc_ext^2, which is clipped to
// contact_cost_range. Terminated where not healthy: z outside its open range.
//
// Shapes: observation float64 [lanes, 348]: qpos without x and y (22), qvel
// (23),
//   cinert (130), cvel (78), qfrc_actuator behind the root's (17), cfrc_ext (78).
//   Action float32 [lanes, 17] in [-0.4, 0.4].
// Errors: NOT_FOUND and INVALID_ARGUMENT of LoadMujocoModel, and as
//   MakeMujocoEnv. Source: gymnasium 1.4.0, humanoid_v5.py.
// Numerics: equal states and actions give Gymnasium's next observation and
//   reward (to 1e-8; mujoco_reference_test). Initial states have Gymnasium's
//   distribution, from Rill's own streams.
//
// Example (HumanoidTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeHumanoid({.lanes = 16, .threads = 2}));
struct HumanoidOptions {
  int64_t lanes = 1;
  int threads = 1;                   // As LaneEnvOptions.
  int64_t max_episode_steps = 1000;  // 0: no limit.
  uint64_t seed = 0;

  // Gymnasium's.
  std::string xml_file = "";  // Empty: Gymnasium's, which is built in.
  int frame_skip = 5;
  double forward_reward_weight = 1.25;
  double ctrl_cost_weight = 0.1;
  double contact_cost_weight = 5e-7;
  std::pair<double, double> contact_cost_range = {
      -std::numeric_limits<double>::infinity(), 10};
  double healthy_reward = 5;
  bool terminate_when_unhealthy = true;
  std::pair<double, double> healthy_z_range = {1, 2};
  double reset_noise_scale = 1e-2;
  bool exclude_current_positions_from_observation = true;
  bool include_cinert_in_observation = true;
  bool include_cvel_in_observation = true;
  bool include_qfrc_actuator_in_observation = true;
  bool include_cfrc_ext_in_observation = true;
};
absl::StatusOr<std::unique_ptr<Env>> MakeHumanoid(
    const HumanoidOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_HUMANOID_H_
