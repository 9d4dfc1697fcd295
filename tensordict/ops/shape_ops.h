// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_SHAPE_OPS_H_
#define RILL_TENSORDICT_OPS_SHAPE_OPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensordict/ops/scalar.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {

// Operations on the batch dimensions of a dictionary, as TorchRL's users know
// them. Every leaf keeps what lies behind its batch dimensions, nested
// dictionaries' longer batch shapes keep their tails, values without a shape
// and the device are kept. A dimension is one of [-rank, rank) of the batch
// shape; a negative one counts from the end.
//
// Results share bytes unless it says "copied": a copy is made once, contiguous
// a leaf, and wants leaves in host memory.
// Errors: INVALID_ARGUMENT for a dimension, a size or a number of sizes that
//   does not fit (the message has the batch shape), or a rank over
//   Shape::kMaxRank. An error of a leaf names its key.
// Thread-safety: thread-safe for reading; bytes are the users' to synchronise.
// Cost: O(leaves x rank) a result; copies O(bytes).
//
// Example (ShapeOpsTest.Example runs it):
//   TensorDict steps({32, 100});                            // [time, lane]
//   RILL_ASSIGN_OR_RETURN(TensorDict lanes, ops::Transpose(steps, 0, 1));
//   RILL_ASSIGN_OR_RETURN(TensorDict rows, ops::Flatten(steps));  // [3200]

// `dims` names every batch dimension once.
absl::StatusOr<TensorDict> Permute(const TensorDict& dict,
                                   absl::Span<const int> dims);
absl::StatusOr<TensorDict> Transpose(const TensorDict& dict, int a, int b);
// Sizes of 1 and new leading dimensions repeat without a copy; the result's
// bytes are not to be written. -1 keeps a size.
absl::StatusOr<TensorDict> Expand(const TensorDict& dict,
                                  absl::Span<const int64_t> batch_shape);
// The same rows in order under another batch shape; one size may be -1.
// FAILED_PRECONDITION where a leaf's layout wants a copy: use
// TensorDict::Reshape.
absl::StatusOr<TensorDict> View(const TensorDict& dict,
                                absl::Span<const int64_t> batch_shape);
// Dimensions first..last (inclusive) as one; copied where there is no view.
absl::StatusOr<TensorDict> Flatten(const TensorDict& dict, int first = 0,
                                   int last = -1);
// Dimension `dim` as several, whose product is its size; one may be -1.
absl::StatusOr<TensorDict> Unflatten(const TensorDict& dict, int dim,
                                     absl::Span<const int64_t> sizes);

// Parts of `split_size` >= 1 rows of `dim`, the last one maybe shorter; one
// empty part of an empty dimension.
absl::StatusOr<std::vector<TensorDict>> Split(const TensorDict& dict,
                                              int64_t split_size, int dim = 0);
// Parts of these sizes, which add up to the dimension's.
absl::StatusOr<std::vector<TensorDict>> Split(const TensorDict& dict,
                                              absl::Span<const int64_t> sizes,
                                              int dim = 0);
// At most `chunks` >= 1 parts of ceil(size / chunks) rows, the last one maybe
// shorter; one empty part of an empty dimension.
absl::StatusOr<std::vector<TensorDict>> Chunk(const TensorDict& dict,
                                              int64_t chunks, int dim = 0);
// One dictionary for each index of `dim`, without that dimension.
absl::StatusOr<std::vector<TensorDict>> Unbind(const TensorDict& dict,
                                               int dim = 0);

// Copied: the whole dictionary repeats[d] times along each dimension d; one
// number for each batch dimension, >= 0. Here and in the next ones a dimension
// of the result has at most 2^31 rows.
absl::StatusOr<TensorDict> Repeat(const TensorDict& dict,
                                  absl::Span<const int64_t> repeats);
// Copied: each row of `dim` `repeats` times in a row, or row i repeats[i]
// times.
absl::StatusOr<TensorDict> RepeatInterleave(const TensorDict& dict,
                                            int64_t repeats, int dim = 0);
absl::StatusOr<TensorDict> RepeatInterleave(const TensorDict& dict,
                                            absl::Span<const int64_t> repeats,
                                            int dim = 0);
// Copied: row i of dims[k] moves to i + shifts[k], around the end.
absl::StatusOr<TensorDict> Roll(const TensorDict& dict,
                                absl::Span<const int64_t> shifts,
                                absl::Span<const int> dims);
// In reverse order along `dims`, by negative strides.
absl::StatusOr<TensorDict> Flip(const TensorDict& dict,
                                absl::Span<const int> dims);

struct PadSize {
  int64_t before = 0;
  int64_t after = 0;
};
// Copied: rows of `value` before and after dimension d as sizes[d] says; later
// dimensions stay. `value` must fit every leaf's dtype as Scalar says; values a
// row are padded by null.
absl::StatusOr<TensorDict> Pad(const TensorDict& dict,
                               absl::Span<const PadSize> sizes,
                               const Scalar& value = 0);

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_SHAPE_OPS_H_
