// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_HOPPER_H_
#define RILL_ENVS_MUJOCO_HOPPER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's Hopper-v5: a one-legged robot is to hop forwards. Reward:
// forward_reward_weight * x velocity + healthy_reward where healthy
// - ctrl_cost_weight * sum of action^2. Terminated where not healthy: state, z
// or angle outside their open ranges.
//
// Shapes: observation float64 [lanes, 11]: qpos without x, qvel in [-10, 10];
//   [lanes, 12] with x. Action float32 [lanes, 3] in [-1, 1].
// Errors: NOT_FOUND and INVALID_ARGUMENT of LoadMujocoModel, and as
//   MakeMujocoEnv. Source: gymnasium 1.4.0, hopper_v5.py.
// Numerics: equal states and actions give Gymnasium's next observation and
//   reward (to 1e-8; mujoco_reference_test). Initial states have Gymnasium's
//   distribution, from Rill's own streams.
//
// Example (HopperTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeHopper({.lanes = 16, .threads = 2}));
struct HopperOptions {
  int64_t lanes = 1;
  int threads = 1;                   // As LaneEnvOptions.
  int64_t max_episode_steps = 1000;  // 0: no limit.
  uint64_t seed = 0;

  // Gymnasium's.
  std::string xml_file = "";  // Empty: Gymnasium's, which is built in.
  int frame_skip = 4;
  double forward_reward_weight = 1;
  double ctrl_cost_weight = 1e-3;
  double healthy_reward = 1;
  bool terminate_when_unhealthy = true;
  std::pair<double, double> healthy_state_range = {-100, 100};
  std::pair<double, double> healthy_z_range = {
      0.7, std::numeric_limits<double>::infinity()};
  std::pair<double, double> healthy_angle_range = {-0.2, 0.2};
  double reset_noise_scale = 5e-3;
  bool exclude_current_positions_from_observation = true;
};
absl::StatusOr<std::unique_ptr<Env>> MakeHopper(
    const HopperOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_HOPPER_H_
