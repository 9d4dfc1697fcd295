// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_TESTING_RANDOM_ENV_H_
#define RILL_ENVS_DEVICE_TESTING_RANDOM_ENV_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"

namespace rill {

// An environment in host memory whose observations are random members of a
// spec, functions of the episode, the step and the bytes of the action. Rewards
// are in [-2, 2), some are 0, and one step in eight ends an episode.
struct RandomEnvOptions {
  int64_t lanes = 1;
  TensorDictSpec observation;
  LeafSpec action;
};
absl::StatusOr<std::unique_ptr<Env>> MakeRandomEnv(
    const RandomEnvOptions& options);

}  // namespace rill

#endif  // RILL_ENVS_DEVICE_TESTING_RANDOM_ENV_H_
