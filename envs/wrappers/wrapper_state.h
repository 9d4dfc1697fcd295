// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_WRAPPER_STATE_H_
#define RILL_ENVS_WRAPPERS_WRAPPER_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/envs/env.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::envs_internal {

// An Env that owns another saves leaves of its own, and "env/state".
// Thread-safety: thread-compatible.

absl::StatusOr<TensorDict> SaveInner(const Env& env);
// FAILED_PRECONDITION, starting with `caller`, where there is none.
absl::Status LoadInner(absl::string_view caller, const TensorDict& state,
                       Env* env);

// A leaf of a state, contiguous. FAILED_PRECONDITION names both sides.
absl::StatusOr<Tensor> ReadState(absl::string_view caller,
                                 const TensorDict& state, absl::string_view key,
                                 DType dtype, const Shape& shape);

// Copies the lanes with mask[lane] != 0 from one saved state of `env` into the
// tensors of another, which nobody else holds (TensorDict::Clone). Leaves of
// rank 2 or more whose first size is the number of lanes hold a row for each;
// all others are of all lanes together. FAILED_PRECONDITION names one of those
// that differs: such an environment's lanes cannot be told apart.
absl::Status CopyLanesOfState(const Env& env, const std::vector<uint8_t>& mask,
                              const TensorDict& from, TensorDict* to);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_WRAPPERS_WRAPPER_STATE_H_
