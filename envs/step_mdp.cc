// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/step_mdp.h"

#include "rill/base/status_macros.h"
#include "rill/envs/steps/step_carry.h"

namespace rill {

absl::Status StepMdp(TensorDict* step) {
  RILL_ASSIGN_OR_RETURN(StepCarry carry, StepCarry::Bind(*step, *step));
  return carry.Run();
}

}  // namespace rill
