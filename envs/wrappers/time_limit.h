// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_TIME_LIMIT_H_
#define RILL_ENVS_WRAPPERS_TIME_LIMIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"

namespace rill {

// An environment whose episodes have at most `max_steps` steps: the step that
// reaches the limit is truncated and done, and stays terminated where it is. It
// is Gymnasium's TimeLimit, for each lane.
//
// The limit is that of a lane's episode. At the limit all groups of the lane
// are truncated and done, also those with episodes of their own. The reset of a
// group alone leaves the lane's count. Steps are those of this Env: around
// MakeFrameSkip, a step with all of its frames counts one.
//
// Leaves: those of `env`, in host memory; the flags below next are written in
//   place.
// State (SaveState): `steps` int64 [lanes, 1] (max_steps where the lane waits
//   for a reset), `env/state`.
// Errors: as `env`. After an error of Reset all lanes of the mask want another.
// Thread-safety: thread-compatible; BeginStep and EndStep call those of `env`.
// Cost: a counter a lane and step; nothing is copied.
//
// Example (TimeLimitTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = 16}));
//   RILL_ASSIGN_OR_RETURN(auto env, MakeTimeLimit(std::move(cart_pole),
//                                                 {.max_steps = 100}));
struct TimeLimitOptions {
  int64_t max_steps = 0;  // > 0.
};
// INVALID_ARGUMENT names the option.
absl::StatusOr<std::unique_ptr<Env>> MakeTimeLimit(
    std::unique_ptr<Env> env, const TimeLimitOptions& options);

}  // namespace rill

#endif  // RILL_ENVS_WRAPPERS_TIME_LIMIT_H_
