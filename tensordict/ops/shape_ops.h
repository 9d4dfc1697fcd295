// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_SHAPE_OPS_H_
#define RILL_TENSORDICT_OPS_SHAPE_OPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill::ops {

// Operations on the batch dimensions of a dictionary, beside TensorDict's own
// (Slice, Reshape, ...). Every leaf keeps what lies behind its batch
// dimensions, nested dictionaries' longer batch shapes keep their tails, values
// without a shape and the device are kept.
//
// Errors: INVALID_ARGUMENT for a dimension, a size or a number of sizes that
//   does not fit (the message has the batch shape), or a rank over
//   Shape::kMaxRank. An error of a leaf names its key. Other kinds of entries:
//   as TensorDict::MapShape.
// Thread-safety: thread-safe for reading; bytes are the users' to synchronise.
// Cost: O(leaves x rank); Pad O(bytes).
//
// Example (ShapeOpsTest.Example runs it):
//   TensorDict steps({32, 100});                            // [time, lane]
//   RILL_ASSIGN_OR_RETURN(TensorDict lanes, ops::Transpose(steps, 0, 1));

// Exchanges two batch dimensions, with their names. The result shares bytes.
absl::StatusOr<TensorDict> Transpose(const TensorDict& dict, int a, int b);

// Sizes of 1 and new leading dimensions repeat without a copy. The result
// shares bytes, which are not to be written through it.
absl::StatusOr<TensorDict> Expand(const TensorDict& dict,
                                  const Shape& batch_shape);

struct PadSize {
  int64_t before = 0;
  int64_t after = 0;
};
// Rows of zeros before and after dimension d as sizes[d] says; later dimensions
// stay. Values a row are padded by null. Copied once, contiguous a leaf; leaves
// in host memory only.
absl::StatusOr<TensorDict> Pad(const TensorDict& dict,
                               absl::Span<const PadSize> sizes);

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_SHAPE_OPS_H_
