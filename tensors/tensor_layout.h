// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_TENSOR_LAYOUT_H_
#define RILL_TENSORS_TENSOR_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/types/span.h"
#include "rill/tensors/per_dim.h"
#include "rill/tensors/shape.h"

// Arithmetic of strides, for the .cc files of this package.
namespace rill::tensor_internal {

using Strides = PerDim;

// Strides of tensors without elements may not fit; they are never used.
inline int64_t MultiplySaturating(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product)
             ? std::numeric_limits<int64_t>::max()
             : product;
}

inline Strides RowMajorStrides(const Shape& shape, int64_t item_bytes) {
  Strides strides;
  int64_t stride = item_bytes;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    if (shape[d] > 1) stride = MultiplySaturating(stride, shape[d]);
  }
  return strides;
}

// How far elements reach from the first one: [*low, *high) in bytes. False
// where that does not fit in int64. For shapes with elements.
inline bool ReachOf(const Shape& shape, absl::Span<const int64_t> strides,
                    int64_t item_bytes, int64_t* low, int64_t* high) {
  *low = 0;
  *high = item_bytes;
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t reach;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &reach)) return false;
    int64_t* end = reach < 0 ? low : high;
    if (__builtin_add_overflow(*end, reach, end)) return false;
  }
  return true;
}

// How many bytes from the first element on lie together in row-major order,
// looking at dimensions [from, rank). The stride of a dimension of size 1 says
// nothing. Sets `*left` to the number of dimensions that did not join.
inline int64_t ContiguousRun(const Shape& shape,
                             absl::Span<const int64_t> strides, int from,
                             int64_t item_bytes, int* left) {
  int64_t run = item_bytes;
  int d = shape.rank();
  for (; d > from && (shape[d - 1] == 1 || strides[d - 1] == run); --d) {
    run *= shape[d - 1];
  }
  *left = d;
  return run;
}

// Whether dimensions [from, rank) are row-major without gaps.
inline bool IsRowMajor(const Shape& shape, absl::Span<const int64_t> strides,
                       int from, int64_t item_bytes) {
  if (shape.num_elements() == 0) return true;
  int left;
  ContiguousRun(shape, strides, from, item_bytes, &left);
  return left == from;
}

// Calls fn(offset_a, offset_b, bytes) for runs that are contiguous on both
// sides and together hold every element once, in row-major order. No calls for
// a shape without elements.
template <typename Fn>
void ForEachRun(const Shape& shape, absl::Span<const int64_t> a,
                absl::Span<const int64_t> b, int64_t item_bytes, Fn&& fn) {
  if (shape.num_elements() == 0) return;
  int64_t run = item_bytes;
  int outer = shape.rank();
  for (; outer > 0 && (shape[outer - 1] == 1 ||
                       (a[outer - 1] == run && b[outer - 1] == run));
       --outer) {
    run *= shape[outer - 1];
  }
  PerDim at;
  int64_t offset_a = 0;
  int64_t offset_b = 0;
  for (;;) {
    fn(offset_a, offset_b, run);
    int d = outer - 1;
    for (; d >= 0; --d) {
      // Never past the last element: strides may be as large as int64 allows.
      if (at[d] + 1 < shape[d]) {
        ++at[d];
        offset_a += a[d];
        offset_b += b[d];
        break;
      }
      offset_a -= a[d] * at[d];
      offset_b -= b[d] * at[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

// memcpy that is a plain move for the sizes of elements.
inline void CopyRun(std::byte* to, const std::byte* from, int64_t bytes) {
  switch (bytes) {
    case 1:
      *to = *from;
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    default:
      std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

}  // namespace rill::tensor_internal

#endif  // RILL_TENSORS_TENSOR_LAYOUT_H_
