// SPDX-License-Identifier: Apache-2.0
// Operations on batch dimensions that share bytes; shape_copies.cc has those
// that copy.
#include "rill/tensordict/ops/shape_ops.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/ops/layout.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

using ops_internal::MakeShape;
using ops_internal::Restrided;
using ops_internal::WrapDim;
using ops_internal::WrapDims;

// `sizes` with a -1 replaced so that the product is `rows`.
absl::StatusOr<Shape> InferSizes(absl::string_view caller,
                                 absl::Span<const int64_t> sizes,
                                 int64_t rows) {
  const auto error = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        caller, ": sizes: got {", absl::StrJoin(sizes, ", "),
        "}, want ones with a product of ", rows, ", at most one of them -1"));
  };
  std::vector<int64_t> inferred(sizes.begin(), sizes.end());
  const auto open = std::find(inferred.begin(), inferred.end(), -1);
  if (open != inferred.end()) {
    *open = 1;
    absl::StatusOr<Shape> known = Shape::Create(inferred);
    if (!known.ok() || known->num_elements() == 0 ||
        rows % known->num_elements() != 0) {
      return error();
    }
    *open = rows / known->num_elements();
  }
  RILL_ASSIGN_OR_RETURN(const Shape shape, MakeShape(caller, inferred));
  if (shape.num_elements() != rows) return error();
  return shape;
}

// The batch dimensions replaced by `batch_shape`, in front of the leaf's tail.
absl::StatusOr<Shape> WithBatch(absl::string_view caller, const Tensor& leaf,
                                int old_rank, const Shape& batch_shape) {
  std::vector<int64_t> sizes(batch_shape.sizes().begin(),
                             batch_shape.sizes().end());
  const absl::Span<const int64_t> tail = leaf.shape().sizes();
  sizes.insert(sizes.end(), tail.begin() + old_rank, tail.end());
  return MakeShape(caller, sizes);
}

}  // namespace

absl::StatusOr<TensorDict> Permute(const TensorDict& dict,
                                   absl::Span<const int> dims) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(std::vector<int> order,
                        WrapDims("ops::Permute", batch, dims));
  if (static_cast<int>(order.size()) != batch.rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ops::Permute: dimensions of batch shape ", batch.ToString(), ": got {",
        absl::StrJoin(dims, ", "), "}, want each of them once"));
  }
  std::vector<int64_t> sizes;
  for (const int dim : order) sizes.push_back(batch[dim]);
  RILL_ASSIGN_OR_RETURN(const Shape shape, MakeShape("ops::Permute", sizes));
  return dict.MapShape(shape, [&](const Tensor& leaf) {
    std::vector<int> all = order;
    for (int d = batch.rank(); d < leaf.rank(); ++d) all.push_back(d);
    return leaf.Permute(all);
  });
}

absl::StatusOr<TensorDict> Transpose(const TensorDict& dict, int a, int b) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(a, WrapDim("ops::Transpose", batch, a));
  RILL_ASSIGN_OR_RETURN(b, WrapDim("ops::Transpose", batch, b));
  std::vector<int> order(batch.rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[a], order[b]);
  return Permute(dict, order);
}

absl::StatusOr<TensorDict> Expand(const TensorDict& dict,
                                  absl::Span<const int64_t> batch_shape) {
  const Shape& batch = dict.batch_shape();
  const int added = static_cast<int>(batch_shape.size()) - batch.rank();
  bool fits = added >= 0;
  std::vector<int64_t> sizes(batch_shape.begin(), batch_shape.end());
  for (int d = 0; fits && d < batch.rank(); ++d) {
    int64_t& size = sizes[d + added];
    if (size == -1) size = batch[d];
    fits = batch[d] == 1 || batch[d] == size;
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ops::Expand: batch shape: got {", absl::StrJoin(batch_shape, ", "),
        "}, want one that ends like ", batch.ToString(),
        " but for sizes of 1"));
  }
  RILL_ASSIGN_OR_RETURN(const Shape shape, MakeShape("ops::Expand", sizes));
  return dict.MapShape(
      shape, [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
        RILL_ASSIGN_OR_RETURN(const Shape all, WithBatch("ops::Expand", leaf,
                                                         batch.rank(), shape));
        return leaf.Expand(all);
      });
}

absl::StatusOr<TensorDict> View(const TensorDict& dict,
                                absl::Span<const int64_t> batch_shape) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(const Shape shape, InferSizes("ops::View", batch_shape,
                                                      batch.num_elements()));
  return dict.MapShape(
      shape, [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
        RILL_ASSIGN_OR_RETURN(
            const Shape all, WithBatch("ops::View", leaf, batch.rank(), shape));
        return leaf.ViewAs(all);
      });
}

absl::StatusOr<TensorDict> Flatten(const TensorDict& dict, int first,
                                   int last) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(first, WrapDim("ops::Flatten", batch, first));
  RILL_ASSIGN_OR_RETURN(last, WrapDim("ops::Flatten", batch, last));
  if (first > last) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ops::Flatten: dimensions of batch shape ", batch.ToString(),
        ": got first ", first, " and last ", last, ", want first <= last"));
  }
  const int64_t rows = batch.Prefix(last + 1).Suffix(first).num_elements();
  return dict.Reshape(
      batch.Prefix(first).Concat({rows}).Concat(batch.Suffix(last + 1)));
}

absl::StatusOr<TensorDict> Unflatten(const TensorDict& dict, int dim,
                                     absl::Span<const int64_t> sizes) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(dim, WrapDim("ops::Unflatten", batch, dim));
  RILL_ASSIGN_OR_RETURN(const Shape parts,
                        InferSizes("ops::Unflatten", sizes, batch[dim]));
  std::vector<int64_t> all(batch.sizes().begin(), batch.sizes().begin() + dim);
  all.insert(all.end(), parts.sizes().begin(), parts.sizes().end());
  all.insert(all.end(), batch.sizes().begin() + dim + 1, batch.sizes().end());
  // A dimension that is taken apart is always a view.
  return View(dict, all);
}

absl::StatusOr<std::vector<TensorDict>> Split(const TensorDict& dict,
                                              absl::Span<const int64_t> sizes,
                                              int dim) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(dim, WrapDim("ops::Split", batch, dim));
  int64_t left = batch[dim];
  bool fits = true;
  for (const int64_t size : sizes) {
    fits = fits && size >= 0 && size <= left;
    if (fits) left -= size;
  }
  if (!fits || left != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ops::Split: sizes: got {", absl::StrJoin(sizes, ", "),
        "}, want ones that add up to ", batch[dim], " as dimension ", dim,
        " of batch shape ", batch.ToString()));
  }
  std::vector<TensorDict> parts;
  parts.reserve(sizes.size());
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    RILL_ASSIGN_OR_RETURN(TensorDict part,
                          dict.Slice(dim, begin, begin + size));
    parts.push_back(std::move(part));
    begin += size;
  }
  return parts;
}

absl::StatusOr<std::vector<TensorDict>> Split(const TensorDict& dict,
                                              int64_t split_size, int dim) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(dim, WrapDim("ops::Split", batch, dim));
  if (split_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ops::Split: split size: got ", split_size, ", want >= 1"));
  }
  std::vector<int64_t> sizes;
  int64_t left = batch[dim];
  do {
    sizes.push_back(std::min(split_size, left));
    left -= sizes.back();
  } while (left > 0);
  return Split(dict, sizes, dim);
}

absl::StatusOr<std::vector<TensorDict>> Chunk(const TensorDict& dict,
                                              int64_t chunks, int dim) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(dim, WrapDim("ops::Chunk", batch, dim));
  if (chunks < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("ops::Chunk: chunks: got ", chunks, ", want >= 1"));
  }
  return Split(dict, std::max<int64_t>(batch[dim] - 1, 0) / chunks + 1, dim);
}

absl::StatusOr<std::vector<TensorDict>> Unbind(const TensorDict& dict,
                                               int dim) {
  const Shape& batch = dict.batch_shape();
  RILL_ASSIGN_OR_RETURN(dim, WrapDim("ops::Unbind", batch, dim));
  std::vector<TensorDict> rows;
  rows.reserve(batch[dim]);
  for (int64_t i = 0; i < batch[dim]; ++i) {
    RILL_ASSIGN_OR_RETURN(TensorDict row, dict.SelectDim(dim, i));
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<TensorDict> Flip(const TensorDict& dict,
                                absl::Span<const int> dims) {
  RILL_ASSIGN_OR_RETURN(const std::vector<int> flipped,
                        WrapDims("ops::Flip", dict.batch_shape(), dims));
  return dict.MapShape(
      dict.batch_shape(), [&](const Tensor& leaf) -> absl::StatusOr<Tensor> {
        if (leaf.num_elements() == 0) return leaf;
        std::vector<int64_t> strides(leaf.strides_bytes().begin(),
                                     leaf.strides_bytes().end());
        int64_t offset = 0;
        for (const int dim : flipped) {
          // The stride of a dimension of size 1 says nothing.
          if (leaf.shape()[dim] > 1) {
            offset += (leaf.shape()[dim] - 1) * strides[dim];
          }
          strides[dim] = -strides[dim];
        }
        return Restrided(leaf, leaf.shape(), strides, offset);
      });
}

}  // namespace rill::ops
