// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEP_SPEC_H_
#define RILL_ENVS_STEP_SPEC_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// What a whole step of `env` holds: root, action, next. INVALID_ARGUMENT where
// observation_spec uses a key that means something else.
absl::StatusOr<TensorDictSpec> StepSpec(const Env& env);

// Zeroed leaves of StepSpec, [lanes]: what Reset and Step of `env` fill.
absl::StatusOr<TensorDict> MakeStep(const Env& env);

// Copies every leaf below `next` that also stands at the root of `step` to the
// root: the next step's beginning. Rewards stay below `next`. In place.
// INVALID_ARGUMENT, nothing copied, where the two sides of a leaf differ in
// dtype or shape.
absl::Status StepMdp(TensorDict* step);

// Picks actions: reads `root` [lanes], fills `action` [lanes, ...] in place.
using ActFunction =
    absl::FunctionRef<absl::Status(const TensorDict& root, Tensor* action)>;

}  // namespace rill

#endif  // RILL_ENVS_STEP_SPEC_H_
