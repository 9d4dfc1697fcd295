// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CLASSIC_CONTROL_MOUNTAIN_CAR_CONTINUOUS_H_
#define RILL_ENVS_CLASSIC_CONTROL_MOUNTAIN_CAR_CONTINUOUS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's MountainCarContinuous-v0, bit for bit: MountainCar whose car is
// pushed with a force in [-1, 1] and must reach x >= 0.45. The reward is 100 at
// the goal, less 0.1 force^2 a step; terminated at the goal, truncated after
// 999 steps.
//
// Source: Moore, 1990; gymnasium 1.4.0, classic_control.
// Shapes: observation float32 [lanes, 2] (x in [-1.2, 0.6], x' in [-0.07,
//   0.07]), action float32 [lanes, 1] in [-1, 1].
// Numerics: as Gymnasium computes, the first step of an episode is in double
//   and the others are in float32, apart from libm's cosine
//   (classic_control_test, against recorded trajectories). The reward is
//   Gymnasium's double, rounded.
// Differs: actions outside the bounds are refused, where Gymnasium clips them.
//   An episode begins at rest, x uniform in [-0.6, -0.4) from Rill's own
//   counter-based streams, not NumPy's; LoadState takes any other.
// State (SaveState): as CartPole's, `state` float64 [lanes, 2] with values of
//   float32 after the first step.
// Errors, Thread-safety: as Env.
// Cost: 15 ns a lane and step (classic_control_benchmark, 64 lanes).
//
// Example (MountainCarContinuousTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeMountainCarContinuous({.lanes = 16}));
struct MountainCarContinuousOptions {
  int64_t lanes = 1;                // In [1, 2^30].
  int64_t max_episode_steps = 999;  // > 0.
  uint64_t seed = 0;
};
// INVALID_ARGUMENT names the option that is out of range.
absl::StatusOr<std::unique_ptr<Env>> MakeMountainCarContinuous(
    const MountainCarContinuousOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_CLASSIC_CONTROL_MOUNTAIN_CAR_CONTINUOUS_H_
