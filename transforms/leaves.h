// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_LEAVES_H_
#define RILL_TRANSFORMS_LEAVES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::transforms_internal {

// How transforms get at leaves. All results are contiguous, in host memory and,
// where they may be written, stand in `dict` under `key` already; `caller`
// ("RewardScaling") starts the messages. Errors: NOT_FOUND lists the keys
// there are; FAILED_PRECONDITION where the leaf lies on a device.
// Thread-safety: thread-compatible.

// To be read only: a contiguous copy where the leaf is strided, which then does
// not stand in `dict`. The Tensor outlives changes of the dictionary.
absl::StatusOr<Tensor> ReadLeaf(absl::string_view caller, absl::string_view key,
                                const TensorDict& dict);

// To be changed in place: for Forward, which is handed the sample's own
// tensors. Copies only what cannot be written.
absl::StatusOr<Tensor> WritableLeaf(absl::string_view caller,
                                    absl::string_view key, TensorDict* dict);

// To be written whole, its old values are lost: reuses the leaf where MayReuse
// (tensordict/bound_rows.h) allows it, else makes one.
absl::StatusOr<Tensor> FreshLeaf(absl::string_view key, DType dtype,
                                 const Shape& shape, TensorDict* dict);

// INVALID_ARGUMENT, naming both sides, unless the leaf has this dtype and
// shape.
absl::Status CheckLeaf(absl::string_view caller, absl::string_view key,
                       const Tensor& leaf, DType dtype, const Shape& shape);

// NOT_FOUND lists the keys there are.
absl::StatusOr<LeafSpec> FindSpec(absl::string_view caller,
                                  absl::string_view key,
                                  const TensorDictSpec& spec);

// NOT_FOUND or INVALID_ARGUMENT unless there is such a leaf, bool[1].
absl::Status CheckIsFlag(absl::string_view caller, absl::string_view key,
                         const TensorDictSpec& spec);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_LEAVES_H_
