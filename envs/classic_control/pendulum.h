// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CLASSIC_CONTROL_PENDULUM_H_
#define RILL_ENVS_CLASSIC_CONTROL_PENDULUM_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's Pendulum-v1, bit for bit: a torque in [-2, 2] swings a pendulum
// up and holds it there. The reward is -(angle^2 + 0.1 angle'^2 + 0.001
// torque^2), angle 0 being up; truncated after 200 steps, never terminated.
//
// Source: gymnasium 1.4.0, classic_control.
// Shapes: observation float32 [lanes, 3] (cosine and sine of the angle, angle'
//   in [-8, 8]; the state is angle and angle' in double), action float32
//   [lanes, 1] in [-2, 2].
// Numerics: the torque's terms in float32 and the others in double, libm's sine
//   and power, no fused multiply-add, as Gymnasium computes; every step equals
//   its own (classic_control_test, against recorded trajectories). The reward
//   is Gymnasium's double, rounded.
// Differs: torques outside the bounds are refused, where Gymnasium clips them.
//   An episode begins with an angle uniform in [-pi, pi) and a velocity uniform
//   in [-1, 1) from Rill's own counter-based streams, not NumPy's; LoadState
//   takes any others.
// State (SaveState): as CartPole's, `state` float64 [lanes, 2].
// Errors, Thread-safety: as Env.
// Cost: 60 ns a lane and step (classic_control_benchmark, 64 lanes).
//
// Example (PendulumTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakePendulum({.lanes = 16, .seed = 1}));
struct PendulumOptions {
  int64_t lanes = 1;                // In [1, 2^30].
  int64_t max_episode_steps = 200;  // > 0.
  uint64_t seed = 0;
};
// INVALID_ARGUMENT names the option that is out of range.
absl::StatusOr<std::unique_ptr<Env>> MakePendulum(
    const PendulumOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_CLASSIC_CONTROL_PENDULUM_H_
