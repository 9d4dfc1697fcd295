// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TESTING_TWO_AGENTS_ENV_H_
#define RILL_ENVS_TESTING_TWO_AGENTS_ENV_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// Groups that a test can predict, without randomness.
//
// `agents`, two of them: observation float32 [2, 1] is the lane's steps since
// its reset, and 10 more for the second agent; action int64 [2] in {0, 1, 2};
// an agent's reward is its action. Both are done where the lane is.
// `guard`, with episodes of its own: observation float32 [1] is its steps since
// it began; it is truncated after `guard_steps`. The lane terminates after
// episode_steps.
struct TwoAgentsEnvOptions {
  int64_t lanes = 1;          // > 0.
  int64_t episode_steps = 5;  // > 0.
  int64_t guard_steps = 2;    // > 0.
};
// INVALID_ARGUMENT names the options.
absl::StatusOr<std::unique_ptr<Env>> MakeTwoAgentsEnv(
    const TwoAgentsEnvOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_TESTING_TWO_AGENTS_ENV_H_
