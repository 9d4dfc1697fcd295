// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_MASKED_SELECT_H_
#define RILL_TENSORDICT_OPS_MASKED_SELECT_H_

#include "absl/status/statusor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::ops {

// TorchRL's td[mask]: the rows where `mask` is true, in row-major order, as one
// dimension in the place of the mask's. Copied.
//
// Shapes: `mask` is bool of the batch shape or its first dimensions, at least
//   one, in host memory.
// Errors: INVALID_ARGUMENT for another mask; those of TensorDict::Gather and,
//   for a mask of several dimensions, of Reshape.
// Thread-safety: thread-safe for reading.
// Cost: one pass over the mask, then a TensorDict::Gather.
//
// Example (MaskedSelectTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(TensorDict chosen, ops::MaskedSelect(batch, mask));
absl::StatusOr<TensorDict> MaskedSelect(const TensorDict& dict,
                                        const Tensor& mask);

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_MASKED_SELECT_H_
