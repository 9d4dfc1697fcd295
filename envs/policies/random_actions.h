// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_POLICIES_RANDOM_ACTIONS_H_
#define RILL_ENVS_POLICIES_RANDOM_ACTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rill/base/rng.h"
#include "rill/device/stream.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Where random actions come from: leaf i of an action draws from substream
// first_substream + i of (seed, stream).
struct RandomActionDraws {
  uint64_t seed = 0;
  RngStream stream = RngStream::kSpec;
  uint16_t first_substream = 0;
};

// Fills each leaf of `action` (EnvSpec::action) in `step` with random members
// (LeafSpec::Random): those that `draws` has for step number `number`.
// NOT_FOUND or INVALID_ARGUMENT names a leaf that is not there or has another
// layout. Leaves on a device are written on `stream`, by default the device's
// default one, and complete on return.
// Cost: allocates nothing for contiguous leaves in host memory.
absl::Status WriteRandomActions(const TensorDictSpec& action,
                                const RandomActionDraws& draws, int64_t number,
                                const TensorDict& step,
                                const Stream* stream = nullptr);

}  // namespace rill

#endif  // RILL_ENVS_POLICIES_RANDOM_ACTIONS_H_
