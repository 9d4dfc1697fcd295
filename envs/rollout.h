// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_ROLLOUT_H_
#define RILL_ENVS_ROLLOUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Options of Rollout, with the meaning and the defaults of TorchRL's
// EnvBase.rollout.
struct RolloutOptions {
  int64_t max_steps = 0;  // >= 1.
  // Reset all lanes first. False: go on from the state at the root, where an
  // earlier rollout ended or the caller has reset the lanes.
  bool auto_reset = true;
  // Stop behind the first step that ends a lane. False: lanes that end begin
  // anew on the way.
  bool break_when_any_done = true;
  // Without break_when_any_done: stop when every lane has ended once.
  bool break_when_all_done = false;
  // Truncate the lanes of the last step that are not done (the batch only).
  bool set_truncated = false;
  bool explore = true;  // ActContext::explore.
};

// Steps `env` with `policy`. Result: [lanes, time], the leaves of the step and
// those that the policy writes; the true final observations are in `next`.
// The environment is left behind the last step, carried over, with the lanes
// that are done reset. Recurrent state of the policy begins at zero. ActContext
// counts steps and frames from 0 in each call, and has no seed.
//
// INVALID_ARGUMENT where max_steps < 1; errors of environment and policy as
// they are.
//
// Example (RolloutTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto env, MakeCartPole({.lanes = 16}));
//   RILL_ASSIGN_OR_RETURN(
//       TensorDict batch,
//       Rollout(*env, policy,
//               {.max_steps = 100, .break_when_any_done = false}));
absl::StatusOr<TensorDict> Rollout(Env& env, Policy& policy,
                                   const RolloutOptions& options);
inline absl::StatusOr<TensorDict> Rollout(Env& env, Policy&& policy,
                                          const RolloutOptions& options) {
  return Rollout(env, policy, options);
}

}  // namespace rill

#endif  // RILL_ENVS_ROLLOUT_H_
