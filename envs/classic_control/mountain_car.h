// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CLASSIC_CONTROL_MOUNTAIN_CAR_H_
#define RILL_ENVS_CLASSIC_CONTROL_MOUNTAIN_CAR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's MountainCar-v0, bit for bit. A weak car in a valley is pushed
// left (0), not at all (1) or right (2). The goal is x >= 0.5, to which it must
// swing up. The reward is -1 a step; terminated at the goal, truncated after
// 200 steps.
//
// Source: Moore, 1990; gymnasium 1.4.0, classic_control.
// Shapes: observation float32 [lanes, 2] (x in [-1.2, 0.6], x' in [-0.07,
//   0.07]; the state is in double), action int64 [lanes] in {0, 1, 2}.
// Numerics: libm's cosine, no fused multiply-add; every step equals Gymnasium's
//   (classic_control_test, against recorded trajectories).
// Differs: an episode begins at rest, x uniform in [-0.6, -0.4) from Rill's own
//   counter-based streams, not NumPy's; LoadState takes any other.
// State (SaveState): as CartPole's, `state` float64 [lanes, 2].
// Errors, Thread-safety: as Env.
// Cost: 12 ns a lane and step (classic_control_benchmark, 64 lanes).
//
// Example (MountainCarTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeMountainCar({.lanes = 16, .seed = 1}));
struct MountainCarOptions {
  int64_t lanes = 1;                // In [1, 2^30].
  int64_t max_episode_steps = 200;  // > 0.
  uint64_t seed = 0;
};
// INVALID_ARGUMENT names the option that is out of range.
absl::StatusOr<std::unique_ptr<Env>> MakeMountainCar(
    const MountainCarOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_CLASSIC_CONTROL_MOUNTAIN_CAR_H_
