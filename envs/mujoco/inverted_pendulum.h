// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_INVERTED_PENDULUM_H_
#define RILL_ENVS_MUJOCO_INVERTED_PENDULUM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Gymnasium's InvertedPendulum-v5: a cart is to balance a pole. Reward: 1, or 0
// where terminated: |angle| > 0.2.
//
// Shapes: observation float64 [lanes, 4]: qpos, qvel. Action float32 [lanes, 1]
//   in [-3, 3].
// Errors: NOT_FOUND and INVALID_ARGUMENT of LoadMujocoModel, and as
//   MakeMujocoEnv. Source: gymnasium 1.4.0, inverted_pendulum_v5.py.
// Numerics: equal states and actions give Gymnasium's next observation and
//   reward (to 1e-8; mujoco_reference_test). Initial states have Gymnasium's
//   distribution, from Rill's own streams.
//
// Example (InvertedPendulumTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env,
//                         MakeInvertedPendulum({.lanes = 16, .threads = 2}));
struct InvertedPendulumOptions {
  int64_t lanes = 1;
  int threads = 1;                   // As LaneEnvOptions.
  int64_t max_episode_steps = 1000;  // 0: no limit.
  uint64_t seed = 0;

  // Gymnasium's.
  std::string xml_file = "";  // Empty: Gymnasium's, which is built in.
  int frame_skip = 2;
  double reset_noise_scale = 0.01;
};
absl::StatusOr<std::unique_ptr<Env>> MakeInvertedPendulum(
    const InvertedPendulumOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_INVERTED_PENDULUM_H_
