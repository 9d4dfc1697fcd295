// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_DEVICE_PRIORITIES_H_
#define RILL_REPLAY_ROWS_DEVICE_PRIORITIES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/samplers/prioritized/priority_updater.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {

// ReplayBuffer::UpdatePriorities of a tensor. Errors name `caller`.

// True if `updater` takes the values where they lie: one a row of the sample.
// False also where it is null.
absl::StatusOr<bool> LieWithPriorities(absl::string_view caller,
                                       const PriorityUpdater* updater,
                                       const TensorDict& sample,
                                       const Tensor& priorities);
// Enqueued on the current stream; the host does not wait. Slots and generations
// that lie on the host go there through pinned memory.
absl::Status UpdateWhereTheyLie(absl::string_view caller,
                                PriorityUpdater& updater,
                                const TensorDict& sample,
                                const Tensor& priorities);
// The values as contiguous floats of the host. Waits for the current stream.
absl::StatusOr<Tensor> PrioritiesOnHost(absl::string_view caller,
                                        const Tensor& priorities);

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_DEVICE_PRIORITIES_H_
