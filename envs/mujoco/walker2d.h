// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_WALKER2D_H_
#define RILL_ENVS_MUJOCO_WALKER2D_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's Walker2d-v5: a two-legged robot in a plane is to walk forwards.
// Reward: forward_reward_weight * x velocity + healthy_reward where healthy
// - ctrl_cost_weight * sum of action^2. Terminated where not healthy: z or
// angle outside their open ranges.
//
// Shapes: observation float64 [lanes, 17]: qpos without x, qvel in [-10, 10];
//   [lanes, 18] with x. Action float32 [lanes, 6] in [-1, 1].
// Errors: NOT_FOUND and INVALID_ARGUMENT of LoadMujocoModel, and as
//   MakeMujocoEnv. Source: gymnasium 1.4.0, walker2d_v5.py.
// Numerics: equal states and actions give Gymnasium's next observation and
//   reward (to 1e-8; mujoco_reference_test). Initial states have Gymnasium's
//   distribution, from Rill's own streams.
//
// Example (Walker2dTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeWalker2d({.lanes = 16, .threads = 2}));
struct Walker2dOptions {
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
  std::pair<double, double> healthy_z_range = {0.8, 2};
  std::pair<double, double> healthy_angle_range = {-1, 1};
  double reset_noise_scale = 5e-3;
  bool exclude_current_positions_from_observation = true;
};
absl::StatusOr<std::unique_ptr<Env>> MakeWalker2d(
    const Walker2dOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_WALKER2D_H_
