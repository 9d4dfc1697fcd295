// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CLASSIC_CONTROL_ACROBOT_H_
#define RILL_ENVS_CLASSIC_CONTROL_ACROBOT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's Acrobot-v1, bit for bit. Two links hang from a joint; the joint
// between them is turned left (0), not at all (1) or right (2). The goal is the
// free end more than one link above the upper joint. -1 reward a step, 0 for
// the last; terminated at the goal, truncated after 500 steps.
//
// Source: Sutton, 1996 (the equations of Sutton and Barto's book, Runge-Kutta
//   steps of 0.2 s); gymnasium 1.4.0, classic_control.
// Shapes: observation float32 [lanes, 6], action int64 [lanes]. An observation
//   is cosine and sine of the first link's angle, and of the second's against
//   the first, then both velocities in rad/s, within 4 pi and 9 pi. The state is
//   in double.
// Numerics: libm's sine, cosine and power, no fused multiply-add; every step
//   equals Gymnasium's (classic_control_test, against recorded trajectories).
// Differs: an episode begins with four values of [-0.1, 0.1) from Rill's own
//   counter-based streams, rounded to float32, not NumPy's; LoadState takes any
//   others. Its first observation has the sines of double, rounded; NumPy takes
//   those of float32, which differ in the last bit on some machines.
// State (SaveState): as CartPole's, `state` float64 [lanes, 4].
// Errors, Thread-safety: as Env.
// Cost: 4.5 times MountainCar's a lane and step (benchmarks/envs, 64 lanes, AMD
//   EPYC with AVX2): 21 sines and cosines with libm's bits.
//
// Example (AcrobotTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeAcrobot({.lanes = 16, .seed = 1}));
struct AcrobotOptions {
  int64_t lanes = 1;                // In [1, 2^30].
  int64_t max_episode_steps = 500;  // > 0.
  uint64_t seed = 0;
};
// INVALID_ARGUMENT names the option that is out of range.
absl::StatusOr<std::unique_ptr<Env>> MakeAcrobot(
    const AcrobotOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_CLASSIC_CONTROL_ACROBOT_H_
