// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_LEARNER_TD_ERRORS_H_
#define RILL_LIBTORCH_LEARNER_TD_ERRORS_H_

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "rill/replay/replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// ReplayBuffer::UpdatePriorities with the absolute values of a loss's temporal
// differences, [rows] or [rows, 1] of any float type. Where the sampler has its
// priorities on the errors' device (PrioritizedOptions::device) this is
// enqueued in torch's current stream. The next draw waits for it there, and the
// host does not. Elsewhere the errors come to the host.
//
// Errors: those of UpdatePriorities; torch's as CallTorch says.
// Autograd: nothing is recorded, and the errors may require a gradient.
// Thread-safety: thread-safe.
//
// Example (TdErrorsTest.Example runs it):
//   RILL_RETURN_IF_ERROR(UpdatePriorities(*buffer, batch, td_error));
absl::Status UpdatePriorities(ReplayBuffer& buffer, const TensorDict& batch,
                              const at::Tensor& td_errors);

}  // namespace rill

#endif  // RILL_LIBTORCH_LEARNER_TD_ERRORS_H_
