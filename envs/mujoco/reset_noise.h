// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_RESET_NOISE_H_
#define RILL_ENVS_MUJOCO_RESET_NOISE_H_

#include <cstdint>
#include <functional>

#include "mujoco/mujoco.h"
#include "rill/base/rng.h"

namespace rill {

// A MujocoTask::reset that adds noise to the initial state, as Gymnasium's
// tasks do. The noise is uniform in [-scale, scale) for each of qpos and qvel;
// with normal_velocity, that of qvel is scale times a standard normal.
//
// The distributions are Gymnasium's; the numbers are Rill's (base/rng.h).
// Thread-safety: the function is immutable.
//
// Example (ResetNoiseTest.Example runs it):
//   MujocoTask task = {.reward = walk, .reset = ResetNoise({.scale = 0.1})};
struct ResetNoiseOptions {
  double scale = 0;
  bool normal_velocity = false;
};
std::function<void(const mjModel&, const Rng&, uint64_t, mjData*)> ResetNoise(
    const ResetNoiseOptions& options);

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_RESET_NOISE_H_
