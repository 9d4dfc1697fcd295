// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_POLICIES_RANDOM_ACTIONS_H_
#define RILL_ENVS_POLICIES_RANDOM_ACTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/device/stream.h"
#include "rill/envs/env_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Where random actions come from: leaf i of an action draws from substream
// first_substream + i of (seed, stream).
struct RandomActionDraws {
  uint64_t seed = 0;
  RngStream stream = RngStream::kSpec;
  uint16_t first_substream = 0;
};

// Fills each leaf of the environment's action in `step` with random members
// (LeafSpec::Random), those that `draws` has for step number `number`. Where
// the environment has legal actions, they are uniform over the options that the
// mask in `root` allows.
// NOT_FOUND or INVALID_ARGUMENT names a leaf that is not there or has another
// layout. FAILED_PRECONDITION names lane and mask where no option is legal.
// Leaves on a device are written on `stream`, by default the device's
// default one, and complete on return.
// Cost: allocates nothing for contiguous leaves in host memory.
absl::Status WriteRandomActions(const EnvSpec& env,
                                const RandomActionDraws& draws, int64_t number,
                                const TensorDict& root, const TensorDict& step,
                                const Stream* stream = nullptr);

// The entry of `env` for this leaf of the action; null: all options are legal.
const LegalActions* FindLegalActions(const EnvSpec& env,
                                     absl::string_view action);

// The leaf `key` of `dict` as bytes that the host reads: itself, or a copy that
// came behind the work on `stream`. NOT_FOUND where it is missing.
absl::StatusOr<Tensor> OnHost(const TensorDict& dict, absl::string_view key,
                              const Stream* stream);

}  // namespace rill

#endif  // RILL_ENVS_POLICIES_RANDOM_ACTIONS_H_
