// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CART_POLE_PHYSICS_H_
#define RILL_ENVS_CART_POLE_PHYSICS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "rill/base/rng.h"

namespace rill::envs_internal {

// The arithmetic of CartPole-v1, apart so that it alone is compiled without
// fused multiply-add. A state is 4 doubles: x, x', angle, angle'.
inline constexpr int64_t kCartPoleStateSize = 4;

// One Euler step of every lane. state: [lanes, 4], in place; observation:
// float32 [lanes, 4]; is_terminated: [lanes]. Actions are 0 or 1.
void StepCartPoles(absl::Span<const int64_t> actions, double* state,
                   float* observation, bool* is_terminated);

// The state that episode number `episode` of a lane begins with: uniform in
// [-0.05, 0.05), a pure function of (seed of rng, episode, lane).
void InitCartPole(const Rng& rng, uint64_t episode, int64_t lane,
                  double* state);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_CART_POLE_PHYSICS_H_
