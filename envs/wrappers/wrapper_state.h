// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_WRAPPER_STATE_H_
#define RILL_ENVS_WRAPPERS_WRAPPER_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/envs/env.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::envs_internal {

// An Env that owns another saves leaves of its own, and the other's state.
// Thread-safety: thread-compatible.

inline constexpr absl::string_view kInnerState = "env/state";

absl::Status LoadInner(const StateReader& state, Env* env);

// Copies the lanes with mask[lane] != 0 from one saved state of `env` into the
// tensors of another, which nobody else holds (TensorDict::Clone). Leaves of
// rank 2 or more whose first size is the number of lanes hold a row for each;
// all others are of all lanes together. FAILED_PRECONDITION names one of those
// that differs: such an environment's lanes cannot be told apart.
absl::Status CopyLanesOfState(const Env& env, const std::vector<uint8_t>& mask,
                              const TensorDict& from, TensorDict* to);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_WRAPPERS_WRAPPER_STATE_H_
