// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_STRIDED_ROWS_H_
#define RILL_TRANSFORMS_STRUCTURE_STRIDED_ROWS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::transforms_internal {

// Rows that are read in another order of their elements than they lie in.
struct StridedRows {
  DType dtype = DType::kFloat32;
  Shape shape;             // Of a row of the result.
  int64_t from_width = 0;  // Elements of a row that is read.
  // How many elements further the next one of a dimension of `shape` is read; 0
  // repeats one.
  std::array<int64_t, Shape::kMaxRank> strides = {};
};

// `count` rows at `from` to as many at `to`, which follow one another without
// gaps on both sides.
// Thread-safety: thread-safe.
void CopyStridedRows(const StridedRows& rows, int64_t count,
                     const std::byte* from, std::byte* to);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STRUCTURE_STRIDED_ROWS_H_
