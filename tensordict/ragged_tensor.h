// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_RAGGED_TENSOR_H_
#define RILL_TENSORDICT_RAGGED_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Rows padded to one shape, and where there are values.
struct Padded {
  Tensor values;
  // bool; the shape of `values` up to its last dimension that was padded, at
  // least up to the new one. True where a value stands.
  Tensor mask;
};

// Stacks tensors of one dtype, rank and device along a new dimension `dim`,
// each behind padded to the largest size of each dimension. INVALID_ARGUMENT
// names what differs, or a dtype without arithmetic whose pad value is not 0.
// Values are cast as Cast does. Host tensors only.
absl::StatusOr<Padded> StackPadded(absl::Span<const Tensor> rows, int dim = 0,
                                   double pad_value = 0);

// n rows of different shapes, but one dtype and rank: all elements in one
// array, row after row, and a table of shapes. TorchRL's nested tensor. A
// value; copies and slices share bytes.
//
// Thread-safety: thread-compatible; the bytes are the users' to synchronise.
// Cost: Row O(rank); Create and Slice O(rows).
//
// Example (RaggedTensorTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto words, RaggedTensor::FromRows({two, three}));
//   RILL_ASSIGN_OR_RETURN(Tensor row, words.Row(1));    // shape [3], a view
class RaggedTensor {
 public:
  // `values` [total]; `shapes` int64 [n, d] on the host, a row's sizes each, is
  // copied. INVALID_ARGUMENT if a size is negative, they do not fit in int64,
  // their sum is not `total`, or d exceeds Shape::kMaxRank. Values that are not
  // contiguous are copied.
  static absl::StatusOr<RaggedTensor> Create(const Tensor& values,
                                             const Tensor& shapes);
  // Copies at least one row of one dtype, rank and device.
  static absl::StatusOr<RaggedTensor> FromRows(absl::Span<const Tensor> rows);

  int64_t num_rows() const { return shapes_.shape()[0]; }
  int row_rank() const { return static_cast<int>(shapes_.shape()[1]); }
  DType dtype() const { return values_.dtype(); }
  // As in Create. Not to be written to: shapes.
  const Tensor& values() const { return values_; }
  const Tensor& shapes() const { return shapes_; }

  // A view. OUT_OF_RANGE names index and number of rows.
  absl::StatusOr<Tensor> Row(int64_t index) const;
  // Rows [begin, end), sharing bytes.
  absl::StatusOr<RaggedTensor> Slice(int64_t begin, int64_t end) const;
  // These rows, copied.
  absl::StatusOr<RaggedTensor> Gather(absl::Span<const int64_t> rows) const;
  // All rows of all parts, copied; one dtype, row rank and device.
  static absl::StatusOr<RaggedTensor> Cat(absl::Span<const RaggedTensor> parts);
  // The same shapes over other values [total] (a Clone, a Cast, To(device)).
  absl::StatusOr<RaggedTensor> WithValues(const Tensor& values) const;

  // StackPadded of the rows; [0, 0, ...] where there are none.
  absl::StatusOr<Padded> ToPadded(double pad_value = 0) const;

  std::string DebugString() const;

 private:
  RaggedTensor(Tensor values, Tensor shapes,
               std::shared_ptr<const std::vector<int64_t>> offsets);

  Tensor values_;
  Tensor shapes_;
  std::shared_ptr<const std::vector<int64_t>> offsets_;  // n + 1, in elements.
};

}  // namespace rill

#endif  // RILL_TENSORDICT_RAGGED_TENSOR_H_
