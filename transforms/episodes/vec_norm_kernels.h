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

// Numbers of a merge that all columns share.
struct MomentNumbers {
  double rows = 0;  // Of this call, > 0.
  double old = 0;   // The weight of what was before.
  double decay = 1;
  double per_weight = 0;  // 1 / (old + rows)
  double eps = 0;         // The least deviation.
};
// Merges statistics, mean shift[c] and squared deviations before[c], with rows
// whose moments around shift[c] are sum[c] and squares[c]. Afterwards shift[c]
// and mean[c] are the mean of both, after[c] their squared deviations and
// factor[c] 1 / deviation. False where a mean or after[c] is not finite.
bool MergeMoments(const MomentNumbers& numbers, int64_t columns,
                  const double* sum, const double* squares,
                  const double* before, double* shift, double* mean,
                  double* after, double* factor);

// out = (x - shift[c]) * factor[c], in double. `out` may be `x`.
void ShiftThenScale(const float* x, int64_t rows, int64_t pitch,
                    int64_t columns, const double* shift, const double* factor,
                    float* out);
void ShiftThenScale(const double* x, int64_t rows, int64_t pitch,
                    int64_t columns, const double* shift, const double* factor,
                    double* out);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_EPISODES_VEC_NORM_KERNELS_H_
