// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_NOOP_RESET_H_
#define RILL_ENVS_WRAPPERS_NOOP_RESET_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/tensors/tensor.h"

namespace rill {

// An environment whose episodes begin after some steps that no one sees: a
// reset of a lane is one of `env`, then a number of actions in that lane. A
// lane that ends meanwhile is reset and begins again; at the tenth end the
// reset is FAILED_PRECONDITION. TorchRL's NoopResetEnv, for any number of
// lanes.
//
// How one lane steps and others stay: the state is saved, all lanes step, and
// the lanes that must not have moved get their rows of the state back. So with
// several lanes `env` must save its state. A leaf of that is [lanes, n, ...],
// of rank 2 or more, or stays the same. Reset names one that does neither:
// FAILED_PRECONDITION.
//
// Thread-safety: thread-compatible. After an error of Reset that is not about
//   mask or root, all lanes are to be reset.
// Cost: of a reset up to `noops` steps, and with several lanes as many saved
//   states.
//
// Example (NoopResetTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = 16}));
//   RILL_ASSIGN_OR_RETURN(auto env,
//                         MakeNoopReset(std::move(cart_pole), {.noops = 5}));
struct NoopResetOptions {
  int64_t noops = 30;  // >= 0: the most actions.
  // The number is uniform in [0, noops], TorchRL's in [0, noops - 1]; false:
  // always noops.
  bool random = true;
  // A row of the action spec. None: a random action each time, as TorchRL's.
  std::optional<Tensor> noop_action = std::nullopt;
  uint64_t seed = 0;
};
// INVALID_ARGUMENT names the option; `env` has no legal actions
// (EnvSpec::legal_actions), which the unseen ones could break. UNIMPLEMENTED
// where several lanes want a state that `env` cannot save.
absl::StatusOr<std::unique_ptr<Env>> MakeNoopReset(
    std::unique_ptr<Env> env, const NoopResetOptions& options);

}  // namespace rill

#endif  // RILL_ENVS_WRAPPERS_NOOP_RESET_H_
