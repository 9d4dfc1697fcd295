// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/reset_noise.h"

#include <cstdint>
#include <functional>

#include "mujoco/mujoco.h"
#include "rill/base/rng.h"
#include "rill/base/standard_normal.h"

namespace rill {
namespace {

double Uniform(const Rng& rng, uint64_t episode, uint32_t draw) {
  return 2 * rng.UniformDouble(episode, draw) - 1;
}

}  // namespace

std::function<void(const mjModel&, const Rng&, uint64_t, mjData*)> ResetNoise(
    const ResetNoiseOptions& options) {
  return [options](const mjModel& model, const Rng& rng, uint64_t episode,
                   mjData* data) {
    // One draw for each element, in the order of qpos and qvel.
    uint32_t draw = 0;
    for (int64_t i = 0; i < model.nq; ++i) {
      data->qpos[i] += options.scale * Uniform(rng, episode, draw++);
    }
    for (int64_t i = 0; i < model.nv; ++i) {
      data->qvel[i] +=
          options.scale * (options.normal_velocity
                               ? StandardNormal(rng.Bits(episode, draw++))
                               : Uniform(rng, episode, draw++));
    }
  };
}

}  // namespace rill
