// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/strided_rows.h"

#include "rill/transforms/rows/row_steps.h"

namespace rill::transforms_internal {
namespace {

// The last dimension is the inner loop; the others are counted like the digits
// of a number. `at` follows the digits: it goes up by a stride with each, and
// back by the whole dimension where one is full.
template <typename T>
void CopyRows(const StridedRows& rows, int64_t count, const T* in, T* out) {
  const int rank = rows.shape.rank();
  const int64_t inner = rank == 0 ? 1 : rows.shape[rank - 1];
  const int64_t stride =
      rank == 0 ? 0 : rows.strides[static_cast<size_t>(rank - 1)];
  const int64_t outer = rows.shape.num_elements() / inner;
  for (int64_t row = 0; row < count; ++row, in += rows.from_width) {
    std::array<int64_t, Shape::kMaxRank> index = {};
    int64_t at = 0;
    for (int64_t run = 0; run < outer; ++run, out += inner) {
      for (int64_t i = 0; i < inner; ++i) out[i] = in[at + i * stride];
      for (int d = rank - 2; d >= 0; --d) {
        const auto k = static_cast<size_t>(d);
        at += rows.strides[k];
        if (++index[k] < rows.shape[d]) break;
        at -= rows.strides[k] * rows.shape[d];
        index[k] = 0;
      }
    }
  }
}

}  // namespace

void CopyStridedRows(const StridedRows& rows, int64_t count,
                     const std::byte* from, std::byte* to) {
  if (rows.shape.num_elements() == 0) return;
  WithElement(DTypeSize(rows.dtype), [&](auto element) {
    using T = decltype(element);
    CopyRows(rows, count, reinterpret_cast<const T*>(from),
             reinterpret_cast<T*>(to));
  });
}

}  // namespace rill::transforms_internal
