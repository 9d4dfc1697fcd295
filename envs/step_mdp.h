// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEP_MDP_H_
#define RILL_ENVS_STEP_MDP_H_

#include "absl/status/status.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Copies every leaf below `next` that the root of `step` has too to the root:
// the next step's beginning. Rewards stay below `next`; actions and leaves of
// the root alone are kept. In place. INVALID_ARGUMENT,
// nothing copied, where the two sides of a leaf differ in dtype or shape.
// TorchRL's step_mdp.
absl::Status StepMdp(TensorDict* step);

}  // namespace rill

#endif  // RILL_ENVS_STEP_MDP_H_
