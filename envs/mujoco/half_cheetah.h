// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_HALF_CHEETAH_H_
#define RILL_ENVS_MUJOCO_HALF_CHEETAH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's HalfCheetah-v5: a two-legged robot in a plane is to run forwards.
// Reward: forward_reward_weight * x velocity - ctrl_cost_weight * sum of
// action^2. Never terminated.
//
// Shapes: observation float64 [lanes, 17]: qpos without x, qvel; [lanes, 18]
//   with x. Action float32 [lanes, 6] in [-1, 1].
// Errors: NOT_FOUND and INVALID_ARGUMENT of LoadMujocoModel, and as
//   MakeMujocoEnv. Source: gymnasium 1.4.0, half_cheetah_v5.py.
// Numerics: equal states and actions give Gymnasium's next observation and
//   reward (to 1e-8; mujoco_reference_test). Initial states have Gymnasium's
//   distribution, from Rill's own streams.
//
// Example (HalfCheetahTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env,
//                         MakeHalfCheetah({.lanes = 16, .threads = 2}));
struct HalfCheetahOptions {
  int64_t lanes = 1;
  int threads = 1;                   // As LaneEnvOptions.
  int64_t max_episode_steps = 1000;  // 0: no limit.
  uint64_t seed = 0;

  // Gymnasium's.
  std::string xml_file = "";  // Empty: Gymnasium's, which is built in.
  int frame_skip = 5;
  double forward_reward_weight = 1;
  double ctrl_cost_weight = 0.1;
  double reset_noise_scale = 0.1;
  bool exclude_current_positions_from_observation = true;
};
absl::StatusOr<std::unique_ptr<Env>> MakeHalfCheetah(
    const HalfCheetahOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_HALF_CHEETAH_H_
