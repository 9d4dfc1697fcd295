// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CART_POLE_H_
#define RILL_ENVS_CART_POLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's CartPole-v1, bit for bit. A pole on a cart is pushed left (0) or
// right (1), with 1 reward a step. Terminated where |x| > 2.4 or |angle| > 12
// degrees, truncated after 500 steps.
//
// Source: Barto, Sutton, Anderson, 1983; gymnasium 1.4.0, classic_control.
// Shapes: observation float32 [lanes, 4] (x, x', angle, angle'; the state is in
//   double), action int64 [lanes] in {0, 1}.
// Numerics: libm's sine and no fused multiply-add, so that every step equals
//   Gymnasium's (classic_reference_test, against recorded steps).
// Differs: initial states are uniform in [-0.05, 0.05] from Rill's own
//   counter-based streams, not NumPy's; LoadState takes any others.
// State (SaveState): `state` float64 [lanes, 4], `steps` int64 [lanes, 1],
//   `running` bool [lanes, 1], `episode` int64 [lanes, 1] (resets since Seed),
//   `seed` uint64 [lanes, 1].
// Cost: 0.9 times MountainCar's a lane and step (classic_control_benchmark, 64
//   lanes, AVX2).
struct CartPoleOptions {
  int64_t lanes = 1;                // In [1, 2^30].
  int64_t max_episode_steps = 500;  // > 0.
  uint64_t seed = 0;
};
// INVALID_ARGUMENT names the option that is out of range.
absl::StatusOr<std::unique_ptr<Env>> MakeCartPole(
    const CartPoleOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_CART_POLE_H_
