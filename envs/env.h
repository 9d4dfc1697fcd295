// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_ENV_H_
#define RILL_ENVS_ENV_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Several copies ("lanes") of one environment that step together.
//
// Data follow TorchRL's TED layout: at the root `observation` (or what
// observation_spec says), `done`, `terminated`, `truncated` of the state that
// the action is taken in; below `next` the same of the state after it, and
// `reward`. Rewards are float32, finite, and flags bool, all [lanes, 1]; done =
// terminated | truncated. `terminated`: the task has ended, its value is 0
// from here on; `truncated`: the episode was only cut off.
//
// Leaves are filled in place, never replaced: callers look them up once.
//
// An Env never resets by itself: Step leaves the true final observation in
// `next`, and the caller resets the lanes that are done (envs/rollout.h).
//
// Thread-safety: thread-compatible.
// Implementations pass envs/env_checker.h.
class Env {
 public:
  virtual ~Env() = default;

  virtual absl::string_view name() const = 0;  // "CartPole-v1"
  virtual int64_t lanes() const = 0;

  // Leaves that describe a state, flags left out; keys relative to the root.
  virtual const TensorDictSpec& observation_spec() const = 0;
  // The leaf `action`.
  virtual const LeafSpec& action_spec() const = 0;

  // Lane l draws from the stream (seed, l) from now on, beginning with its next
  // reset: equal seeds give equal episodes whatever the other lanes do.
  virtual absl::Status Seed(uint64_t seed) = 0;

  // Begins an episode in the lanes with mask[lane] != 0 and writes their rows
  // of observation and flags (false) into `root`; other rows stay. The leaves
  // must be there (MakeStep in rollout.h makes them). INVALID_ARGUMENT where
  // mask or root do not fit.
  virtual absl::Status Reset(absl::Span<const uint8_t> mask,
                             TensorDict* root) = 0;

  // Reads the leaf `action` of `step` and writes the leaves below `next`.
  // All or nothing: INVALID_ARGUMENT names lane and value where an action is
  // outside action_spec, or a leaf that is missing; FAILED_PRECONDITION names a
  // lane that is done or was never reset; then no lane has moved. A wrong
  // action or leaf has precedence over a lane that is done, whichever lanes
  // the two are of.
  virtual absl::Status Step(TensorDict* step) = 0;

  // The whole state of all lanes, random streams included. UNIMPLEMENTED where
  // a simulator cannot; every environment of this library can. Load refuses,
  // unchanged, what Save of an equal environment did not write.
  virtual absl::StatusOr<TensorDict> SaveState() const = 0;
  virtual absl::Status LoadState(const TensorDict& state) = 0;
};

}  // namespace rill

#endif  // RILL_ENVS_ENV_H_
