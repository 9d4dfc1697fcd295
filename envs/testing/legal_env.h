// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TESTING_LEGAL_ENV_H_
#define RILL_ENVS_TESTING_LEGAL_ENV_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/specs/leaf_spec.h"

namespace rill {

// Legal options that change with each state, and an environment that fails at
// any other: its lane's step is an error, "forbidden".
//
// Observation: `observation` float32 [1], the steps of the episode, and the
// mask. In each state about half of the options are legal, and one of each
// choice or more; they are a function of the seed, the lane, the episode and
// the step.
struct LegalEnvOptions {
  int64_t lanes = 1;
  LeafSpec action = LeafSpec::Categorical(4);  // Of choices.
  std::string action_key = "action";
  std::string mask_key = "action_mask";
  bool declares = true;        // EnvSpec::legal_actions.
  int64_t episode_steps = 5;   // Then the lane terminates.
  int64_t none_legal_at = -1;  // In the state after so many steps.
};
absl::StatusOr<std::unique_ptr<Env>> MakeLegalEnv(
    const LegalEnvOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_TESTING_LEGAL_ENV_H_
