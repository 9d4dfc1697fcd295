// SPDX-License-Identifier: Apache-2.0
// Tensor's views: other shapes and strides over the same bytes.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/tensor_layout.h"

namespace rill {
namespace {

using tensor_internal::RowMajorStrides;
using tensor_internal::Strides;

// The strides under which `to` shows the elements of `from` in order, where
// there are such. Both have the same number of elements, at least one.
// Dimensions of `from` that lie together form a chunk; each dimension of `to`
// must lie inside one chunk. Both shapes are walked from the last dimension on:
// a chunk is collected, then dimensions of `to` are taken until they have as
// many elements. Torch's view does the same.
std::optional<Strides> StridesAs(const Shape& from,
                                 absl::Span<const int64_t> strides,
                                 int64_t item_bytes, const Shape& to) {
  if (from.rank() == 0) return RowMajorStrides(to, item_bytes);
  using tensor_internal::MultiplySaturating;
  Strides result = {};
  int to_dim = to.rank() - 1;
  int64_t chunk_stride = strides[from.rank() - 1];
  int64_t from_count = 1;
  int64_t to_count = 1;
  for (int d = from.rank() - 1; d >= 0; --d) {
    from_count *= from[d];
    // The dimension before continues this chunk: its stride steps over all of
    // it.
    if (d > 0 &&
        (from[d - 1] == 1 ||
         strides[d - 1] == MultiplySaturating(from_count, chunk_stride))) {
      continue;
    }
    // Dimensions of size 1 fit anywhere, so they are taken with the chunk at
    // hand.
    while (to_dim >= 0 && (to_count < from_count || to[to_dim] == 1)) {
      result[to_dim] = to_count * chunk_stride;
      to_count *= to[to_dim--];
    }
    // A dimension of `to` would cross the end of the chunk.
    if (to_count != from_count) return std::nullopt;
    if (d > 0) {
      chunk_stride = strides[d - 1];
      from_count = 1;
      to_count = 1;
    }
  }
  return to_dim == -1 ? std::optional<Strides>(result) : std::nullopt;
}

absl::Status CheckSameCount(absl::string_view caller, const Shape& from,
                            const Shape& to) {
  if (from.num_elements() == to.num_elements()) return absl::OkStatus();
  return InvalidArgument(caller, ": number of elements: got ",
                         to.num_elements(), " of shape ", to.ToString(),
                         ", want ", from.num_elements(), " of shape ",
                         from.ToString());
}

}  // namespace

absl::Status Tensor::CheckDim(absl::string_view caller, int dim) const {
  if (dim >= 0 && dim < rank()) return absl::OkStatus();
  return InvalidArgument(caller, ": dimension of shape ", shape_.ToString(),
                         ": got ", dim, ", want one in [0, ", rank(), ")");
}

absl::StatusOr<Tensor> Tensor::Index(int64_t index) const {
  return Select(0, index);
}

absl::StatusOr<Tensor> Tensor::Select(int dim, int64_t index) const {
  RILL_RETURN_IF_ERROR(CheckDim("Tensor::Select", dim));
  if (index < 0 || index >= shape_[dim]) {
    return OutOfRange("Tensor::Select: index ", index, " is outside [0, ",
                      shape_[dim], ") in dimension ", dim, " of shape ",
                      shape_.ToString());
  }
  absl::StatusOr<Tensor> view = *this;
  // Without elements the strides mean nothing, and must not move the address.
  if (num_elements() > 0) view->data_ += index * strides_[dim];
  view->shape_ = shape_.WithoutDim(dim);
  // The strides behind `dim` move one place to the front.
  for (int d = dim; d < view->rank(); ++d) view->strides_[d] = strides_[d + 1];
  return view;
}

absl::StatusOr<Tensor> Tensor::Slice(int dim, int64_t begin, int64_t end,
                                     int64_t step) const {
  RILL_RETURN_IF_ERROR(CheckDim("Tensor::Slice", dim));
  if (step < 1) {
    return InvalidArgument("Tensor::Slice: step: got ", step, ", want >= 1");
  }
  if (begin < 0 || begin > end || end > shape_[dim]) {
    return OutOfRange("Tensor::Slice: [", begin, ", ", end,
                      ") is not inside [0, ", shape_[dim], ") in dimension ",
                      dim, " of shape ", shape_.ToString());
  }
  absl::StatusOr<Tensor> view = *this;
  const int64_t size = begin == end ? 0
                       : step == 1  ? end - begin
                                    : (end - begin - 1) / step + 1;
  view->shape_ = shape_.WithSize(dim, size);
  if (step != 1) {
    view->strides_[dim] =
        tensor_internal::MultiplySaturating(strides_[dim], step);
  }
  // An empty slice at the end must not point past the buffer.
  if (view->num_elements() > 0) view->data_ += begin * strides_[dim];
  return view;
}

absl::StatusOr<Tensor> Tensor::Squeeze(int dim) const {
  RILL_RETURN_IF_ERROR(CheckDim("Tensor::Squeeze", dim));
  if (shape_[dim] != 1) {
    return InvalidArgument("Tensor::Squeeze: size of dimension ", dim,
                           " of shape ", shape_.ToString(), ": got ",
                           shape_[dim], ", want 1");
  }
  return Select(dim, 0);
}

absl::StatusOr<Tensor> Tensor::Unsqueeze(int dim) const {
  if (dim < 0 || dim > rank()) {
    return InvalidArgument("Tensor::Unsqueeze: dimension for shape ",
                           shape_.ToString(), ": got ", dim,
                           ", want one in [0, ", rank(), "]");
  }
  if (rank() == Shape::kMaxRank) {
    return InvalidArgument("Tensor::Unsqueeze: rank of shape ",
                           shape_.ToString(), ": got ", rank(),
                           ", want less than ", Shape::kMaxRank);
  }
  Tensor view = *this;
  view.shape_ = shape_.WithDim(dim, 1);
  for (int d = rank(); d > dim; --d) view.strides_[d] = strides_[d - 1];
  // The stride of a dimension of size 1 is never used; this one keeps a dense
  // tensor dense.
  view.strides_[dim] = dim == rank() ? DTypeSize(dtype_)
                                     : tensor_internal::MultiplySaturating(
                                           strides_[dim], shape_[dim]);
  return view;
}

// A bit for each dimension: all of them once.
absl::StatusOr<Tensor> Tensor::Permute(absl::Span<const int> dims) const {
  uint32_t seen = 0;
  for (const int dim : dims) {
    if (dim >= 0 && dim < rank()) seen |= 1u << dim;
  }
  if (static_cast<int>(dims.size()) != rank() || seen != (1u << rank()) - 1) {
    return InvalidArgument(
        "Tensor::Permute: dimensions of shape ", shape_.ToString(), ": got {",
        absl::StrJoin(dims, ", "), "}, want each of [0, ", rank(), ") once");
  }
  Tensor view = *this;
  view.shape_ = Shape();
  for (size_t d = 0; d < dims.size(); ++d) {
    view.shape_ = view.shape_.Concat({shape_[dims[d]]});
    view.strides_[d] = strides_[dims[d]];
  }
  return view;
}

absl::StatusOr<Tensor> Tensor::Expand(const Shape& shape) const {
  const int added = shape.rank() - rank();
  // Repeating elements must not make the bytes overflow either.
  bool fits =
      added >= 0 && shape.num_elements() <=
                        std::numeric_limits<int64_t>::max() / DTypeSize(dtype_);
  for (int d = 0; fits && d < rank(); ++d) {
    fits = shape_[d] == 1 || shape_[d] == shape[d + added];
  }
  if (!fits) {
    return InvalidArgument("Tensor::Expand: got shape ", shape.ToString(),
                           ", want one that ends "
                           "like ",
                           shape_.ToString(),
                           " but for sizes of 1, whose bytes fit in "
                           "int64");
  }
  Tensor view = *this;
  view.shape_ = shape;
  // New and repeated dimensions have a stride of 0.
  view.strides_ = {};
  for (int d = 0; d < rank(); ++d) {
    if (shape_[d] == shape[d + added]) view.strides_[d + added] = strides_[d];
  }
  return view;
}

absl::StatusOr<Tensor> Tensor::ViewAs(const Shape& shape) const {
  RILL_RETURN_IF_ERROR(CheckSameCount("Tensor::ViewAs", shape_, shape));
  Tensor view = *this;
  view.shape_ = shape;
  // Without elements any strides do.
  if (num_elements() == 0) {
    view.strides_ = RowMajorStrides(shape, DTypeSize(dtype_));
    return view;
  }
  const std::optional<Strides> strides =
      StridesAs(shape_, strides_bytes(), DTypeSize(dtype_), shape);
  if (!strides.has_value()) {
    return FailedPrecondition(
        "Tensor::ViewAs: shape ", shape_.ToString(), " with strides [",
        absl::StrJoin(strides_bytes(), ", "), "] cannot be seen as ",
        shape.ToString(), " without a copy; use Reshape");
  }
  view.strides_ = *strides;
  return view;
}

absl::StatusOr<Tensor> Tensor::Reshape(const Shape& shape) const {
  RILL_RETURN_IF_ERROR(CheckSameCount("Tensor::Reshape", shape_, shape));
  absl::StatusOr<Tensor> view = ViewAs(shape);
  if (view.ok()) return view;
  RILL_ASSIGN_OR_RETURN(const Tensor copy, Clone());
  return copy.ViewAs(shape);
}

}  // namespace rill
