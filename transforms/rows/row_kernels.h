// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ROW_KERNELS_H_
#define RILL_TRANSFORMS_ROWS_ROW_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace rill::transforms_internal {

// Numbers for the elements of rows: one for all (`period` 1), or one for each
// of the `period` elements of a row.
struct RowNumbers {
  const float* scale = nullptr;
  const float* loc = nullptr;
  int64_t period = 1;
};

// Kernels for the widest vectors of the processor, with the same bits on every
// one. `out` may be `in`; `count` is a multiple of the period.
// Thread-safety: thread-safe.

// out = in * scale + loc, rounded once, as std::fma does.
void ScaleThenShift(const float* in, const RowNumbers& numbers, int64_t count,
                    float* out);
// out = (in - loc) / scale, in double, and then rounded.
void ShiftThenDivide(const float* in, const RowNumbers& numbers, int64_t count,
                     float* out);
// out = in / 255, rounded once.
void UnitInterval(const uint8_t* in, int64_t count, float* out);

// Stores past the caches, for what is not read again soon: a copy, and
// UnitInterval. No overlap. Another thread may read the result once this one
// has called EndStreams.
void StreamCopy(const std::byte* from, int64_t bytes, std::byte* to);
void StreamUnitInterval(const uint8_t* in, int64_t count, float* out);
void EndStreams();

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ROWS_ROW_KERNELS_H_
