// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_NON_TENSOR_H_
#define RILL_TENSORDICT_NON_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// A value without a shape (a string, a list, ...) as JSON text, the same for
// every row of the batch. The text is not parsed here.
struct NonTensor {
  std::string json;
  friend bool operator==(const NonTensor&, const NonTensor&) = default;
};

// One such value for each element of a shape: instructions, names, notes that
// differ from row to row. An immutable value; copies and views share.
//
// It is an int64 tensor of indices into texts that are stored once each, so an
// operation on shapes is that operation on the indices.
//
// Thread-safety: immutable.
// Cost: views O(rank); Create, Stack and Cat O(values), hashing each. A view
//   keeps all texts alive.
//
// Example (NonTensorStackTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto names, NonTensorStack::Create({2}, {"\"left\"", "\"right\""}));
//   RILL_ASSIGN_OR_RETURN(NonTensor second, names.At(1));    // "right"
class NonTensorStack {
 public:
  // `values`: JSON texts, row-major. INVALID_ARGUMENT if their number is not
  // the shape's.
  static absl::StatusOr<NonTensorStack> Create(
      const Shape& shape, absl::Span<const std::string> values);
  // The same value everywhere. O(1).
  static absl::StatusOr<NonTensorStack> Filled(const Shape& shape,
                                               const NonTensor& value);

  const Shape& shape() const { return index_.shape(); }
  int64_t size() const { return index_.num_elements(); }
  // Number `flat` in row-major order; OUT_OF_RANGE.
  absl::StatusOr<NonTensor> At(int64_t flat) const;
  // All, row-major.
  std::vector<std::string> values() const;

  // fn(the int64 host tensor of indices), which may move, drop and repeat
  // indices; index 0 stands for null, so that it may pad with it.
  // INVALID_ARGUMENT where the result is not such a tensor.
  absl::StatusOr<NonTensorStack> MapIndex(
      absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor& index)> fn) const;
  // Rows of dimension 0; OUT_OF_RANGE, INVALID_ARGUMENT for rank 0.
  absl::StatusOr<NonTensorStack> Gather(absl::Span<const int64_t> rows) const;
  // As of dictionaries: along a new dimension / an existing one, whose sizes
  // may differ. INVALID_ARGUMENT names shapes or dimension.
  static absl::StatusOr<NonTensorStack> Stack(
      absl::Span<const NonTensorStack> parts, int dim);
  static absl::StatusOr<NonTensorStack> Cat(
      absl::Span<const NonTensorStack> parts, int dim);

  // Equal shapes and texts.
  friend bool operator==(const NonTensorStack& a, const NonTensorStack& b);
  std::string DebugString() const;  // [2] {"left", "right"}, shortened.

 private:
  using Texts = std::vector<std::string>;  // texts[0] is "null".

  NonTensorStack(Tensor index, std::shared_ptr<const Texts> texts);
  static absl::StatusOr<NonTensorStack> Join(
      absl::Span<const NonTensorStack> parts, int dim, const Shape& shape);
  const std::string& text(int64_t index) const {
    return (*texts_)[static_cast<size_t>(index)];
  }

  Tensor index_;
  std::shared_ptr<const Texts> texts_;
};

}  // namespace rill

#endif  // RILL_TENSORDICT_NON_TENSOR_H_
