// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_ANT_H_
#define RILL_ENVS_MUJOCO_ANT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's Ant-v5: a four-legged robot is to walk in the direction of x.
// Reward: forward_reward_weight * x velocity of main_body + healthy_reward
// where healthy - ctrl_cost_weight * sum of action^2 - contact_cost_weight *
// sum of squared contact forces (cfrc_ext inside contact_force_range).
// Terminated where not healthy: z outside its closed range.
//
// Shapes: observation float64 [lanes, 105]: qpos without x and y (13), qvel
// (14),
//   contact forces of each body but the world (78). Action float32 [lanes, 8] in
//   [-1, 1].
// Errors: NOT_FOUND and INVALID_ARGUMENT of LoadMujocoModel, and as
//   MakeMujocoEnv. Source: gymnasium 1.4.0, ant_v5.py.
// Numerics: equal states and actions give Gymnasium's next observation and
//   reward (to 1e-8; mujoco_reference_test). Initial states have Gymnasium's
//   distribution, from Rill's own streams.
//
// Example (AntTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeAnt({.lanes = 16, .threads = 2}));
struct AntOptions {
  int64_t lanes = 1;
  int threads = 1;                   // As LaneEnvOptions.
  int64_t max_episode_steps = 1000;  // 0: no limit.
  uint64_t seed = 0;

  // Gymnasium's.
  std::string xml_file = "";  // Empty: Gymnasium's, which is built in.
  int frame_skip = 5;
  double forward_reward_weight = 1;
  double ctrl_cost_weight = 0.5;
  double contact_cost_weight = 5e-4;
  double healthy_reward = 1;
  int main_body = 1;  // A body of the model, by number.
  bool terminate_when_unhealthy = true;
  std::pair<double, double> healthy_z_range = {0.2, 1};
  std::pair<double, double> contact_force_range = {-1, 1};
  double reset_noise_scale = 0.1;
  bool exclude_current_positions_from_observation = true;
  bool include_cfrc_ext_in_observation = true;
};
absl::StatusOr<std::unique_ptr<Env>> MakeAnt(const AntOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_ANT_H_
