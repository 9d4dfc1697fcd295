// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_INDEX_H_
#define RILL_TENSORDICT_OPS_INDEX_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {

// Every `step`-th index from `begin` on and before `end`, as Python's
// begin:end:step. An omitted bound is the end of the dimension. Negative
// numbers count from it, and indices outside are cut off. A negative step goes
// backwards. Range{} is the whole dimension.
struct Range {
  std::optional<int64_t> begin = {};
  std::optional<int64_t> end = {};
  int64_t step = 1;
};
// As many whole dimensions as the other elements leave.
struct Ellipsis {};
inline constexpr Ellipsis kEllipsis;
// A new dimension of size 1.
struct NewAxis {};
inline constexpr NewAxis kNewAxis;

// One element of an index expression:
//   integer      one index of a dimension, which is dropped; a tensor of
//                integers of shape [] too
//   Range, kEllipsis, kNewAxis
//   bool tensor  (a mask) the coordinates where it is true, in order, in place
//                of as many dimensions as it has; their sizes must be its shape
//   int64 tensor or vector: these indices; its shape stands in place of the
//                dimension
// Negative indices count from the end.
class DimIndex {
 public:
  using Value = std::variant<int64_t, Range, Ellipsis, NewAxis, Tensor>;

  template <std::integral T>
  requires(!std::same_as<T, bool>)
      DimIndex(T index)  // NOLINT: reads as a literal
      : value_(static_cast<int64_t>(index)) {}
  DimIndex(const Range& range) : value_(range) {}         // NOLINT
  DimIndex(Ellipsis ellipsis) : value_(ellipsis) {}       // NOLINT
  DimIndex(NewAxis axis) : value_(axis) {}                // NOLINT
  DimIndex(Tensor tensor) : value_(std::move(tensor)) {}  // NOLINT
  DimIndex(absl::Span<const int64_t> indices);            // NOLINT: copies them
  DimIndex(const std::vector<int64_t>& indices)           // NOLINT
      : DimIndex(absl::MakeConstSpan(indices)) {}

  const Value& value() const { return value_; }

 private:
  Value value_;
};

// dict[index] and tensor[index] as in torch; of a dictionary the batch
// dimensions. Elements apply to dimensions from the first on, those that are
// left stay whole. Masks and index tensors are broadcast together; their common
// dimensions stand where the first of them stood if they stood side by side,
// else first. (As in torch and unlike NumPy, an integer is taken first and
// separates nothing.)
//
// Without masks and index tensors the result shares bytes, else it is a
// contiguous copy and wants host memory (but for rows of dimension 0 alone:
// TensorDict::Gather). Entries that are no tensors go the way of SelectDim,
// Slice, Unsqueeze and Gather, or else of MapShape.
//
// Errors: INVALID_ARGUMENT for more elements than dimensions, a second
//   ellipsis, a step of 0, an index tensor of another dtype, shapes that do not
//   fit. OUT_OF_RANGE for an index outside [-size, size), with both.
// Thread-safety: thread-safe for reading.
// Cost: O(leaves x rank), copies O(bytes + leaves x indices).
//
// Example (IndexTest.Example runs it):
//   At(batch, {3, kEllipsis, Range{1, 5}});      // batch[3, ..., 1:5]
//   At(batch, {mask});                           // batch[mask]
//   At(batch, {std::vector<int64_t>{0, 0, -1}}); // batch[[0, 0, -1]]
absl::StatusOr<TensorDict> At(const TensorDict& dict,
                              absl::Span<const DimIndex> index);
absl::StatusOr<Tensor> At(const Tensor& tensor,
                          absl::Span<const DimIndex> index);

// dict[index] = source: writes `source` into the bytes of those elements. Its
// batch shape is broadcast to that of At(dict, index): missing leading
// dimensions and sizes of 1 repeat. Where an element is named twice the last
// one in order stays. Values without a shape are left alone; INVALID_ARGUMENT
// for values a row, lazy stacks and ragged tensors.
// Nothing is written unless all is right. NOT_FOUND or INVALID_ARGUMENT for
// keys that are not the same, INVALID_ARGUMENT for dtypes and shapes,
// FAILED_PRECONDITION for leaves that are read-only or repeat elements. Also
// the errors of At.
absl::Status SetAt(const TensorDict& dict, absl::Span<const DimIndex> index,
                   const TensorDict& source);
absl::Status SetAt(const Tensor& tensor, absl::Span<const DimIndex> index,
                   const Tensor& source);

// The rows where `mask` is true, in order, as one dimension; the mask's shape
// is the batch shape or its beginning. Copied.
absl::StatusOr<TensorDict> MaskedSelect(const TensorDict& dict,
                                        const Tensor& mask);

// torch.gather: the row at coordinate c of the result is that at c with
// c[dim] replaced by index[c]. `index` is int64 of the batch rank, no longer
// than the batch in the other dimensions; the result has its shape. Copied.
absl::StatusOr<TensorDict> GatherAlong(const TensorDict& dict, int dim,
                                       const Tensor& index);

// Rows (elements) of `a` where `mask` is true, else of `b`. The mask's shape is
// the batch shape or its beginning (the tensors' shape or its beginning); keys,
// shapes and dtypes are the same on both sides. Values without a shape are
// a's, values a row are chosen like rows; INVALID_ARGUMENT for lazy stacks and
// ragged tensors. Copied.
absl::StatusOr<TensorDict> Where(const Tensor& mask, const TensorDict& a,
                                 const TensorDict& b);
absl::StatusOr<Tensor> Where(const Tensor& mask, const Tensor& a,
                             const Tensor& b);

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_INDEX_H_
