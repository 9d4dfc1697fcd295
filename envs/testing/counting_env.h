// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TESTING_COUNTING_ENV_H_
#define RILL_ENVS_TESTING_COUNTING_ENV_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// An environment that a test can predict. `observation` float32 [lanes, 1] is
// the number of steps since the reset. The reward of a step is the observation
// after it. `action` is int64 [lanes] in {0, 1, 2} and changes nothing. Without
// randomness.
struct CountingEnvOptions {
  int64_t lanes = 1;          // > 0.
  int64_t episode_steps = 3;  // > 0; the episode's last step is this one.
  // Episodes of lane l are l * stagger_steps longer. >= 0.
  int64_t stagger_steps = 0;
  // Episodes end truncated, not terminated.
  bool ends_truncated = false;
  // False: SaveState and LoadState are UNIMPLEMENTED.
  bool can_save = true;
};
// INVALID_ARGUMENT names the option that is out of range.
absl::StatusOr<std::unique_ptr<Env>> MakeCountingEnv(
    const CountingEnvOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_TESTING_COUNTING_ENV_H_
