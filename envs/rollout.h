// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_ROLLOUT_H_
#define RILL_ENVS_ROLLOUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/envs/step_spec.h"  // IWYU pragma: export
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Steps from a reset of all lanes for `max_steps` steps, or until all lanes are
// done at least once where `break_when_all_done`; resets done lanes on the way.
// Result: [lanes, time], the true final observations in `next`.
// INVALID_ARGUMENT where max_steps < 1; errors of `env` and `act` as they are.
struct RolloutOptions {
  int64_t max_steps = 0;
  bool break_when_all_done = false;
};
absl::StatusOr<TensorDict> Rollout(Env& env, ActFunction act,
                                   const RolloutOptions& options);

}  // namespace rill

#endif  // RILL_ENVS_ROLLOUT_H_
