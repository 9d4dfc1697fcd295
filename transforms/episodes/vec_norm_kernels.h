// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_VEC_NORM_KERNELS_H_
#define RILL_TRANSFORMS_EPISODES_VEC_NORM_KERNELS_H_

#include <cstdint>

namespace rill::transforms_internal {

// Kernels for the widest vectors of the processor, over columns. Row r begins
// at x + r * pitch.
// Thread-safety: thread-safe.

// sum[c] += x - shift[c], squares[c] += (x - shift[c])^2 over the rows.
void AddMoments(const float* x, int64_t rows, int64_t pitch, int64_t columns,
                const double* shift, double* sum, double* squares);
void AddMoments(const double* x, int64_t rows, int64_t pitch, int64_t columns,
                const double* shift, double* sum, double* squares);

// out = (x - shift[c]) * factor[c], in double. `out` may be `x`.
void ShiftThenScale(const float* x, int64_t rows, int64_t pitch,
                    int64_t columns, const double* shift, const double* factor,
                    float* out);
void ShiftThenScale(const double* x, int64_t rows, int64_t pitch,
                    int64_t columns, const double* shift, const double* factor,
                    double* out);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_EPISODES_VEC_NORM_KERNELS_H_
