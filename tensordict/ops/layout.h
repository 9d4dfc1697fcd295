// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_LAYOUT_H_
#define RILL_TENSORDICT_OPS_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"

// Dimensions, views and copies, for the .cc files of this package.
namespace rill::ops_internal {

// `dim` of [-rank, rank) as one of [0, rank); INVALID_ARGUMENT outside.
absl::StatusOr<int> WrapDim(absl::string_view caller, const Shape& shape,
                            int dim);
// The same for several; INVALID_ARGUMENT if one stands twice.
absl::StatusOr<std::vector<int>> WrapDims(absl::string_view caller,
                                          const Shape& shape,
                                          absl::Span<const int> dims);

// INVALID_ARGUMENT unless the CPU can read the bytes.
absl::Status CheckHost(absl::string_view caller, const Tensor& tensor);
// INVALID_ARGUMENT if `sizes` break a limit of Shape, after `caller`.
absl::StatusOr<Shape> MakeShape(absl::string_view caller,
                                absl::Span<const int64_t> sizes);

// The bytes of `tensor` under another shape and strides, from `offset` bytes
// behind its first element on.
absl::StatusOr<Tensor> Restrided(const Tensor& tensor, const Shape& shape,
                                 absl::Span<const int64_t> strides_bytes,
                                 int64_t offset);

// Coordinate i of dimension `dim` gets the elements that were at places[i].
struct Places {
  int dim;
  std::vector<int64_t> places;
};
// A contiguous copy of a host tensor with coordinates chosen in each dimension
// apart; those that are not named stay. Dimensions ascend, places are inside.
absl::StatusOr<Tensor> Take(absl::string_view caller, const Tensor& from,
                            absl::Span<const Places> places);

}  // namespace rill::ops_internal

#endif  // RILL_TENSORDICT_OPS_LAYOUT_H_
