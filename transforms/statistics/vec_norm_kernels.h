// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STATISTICS_VEC_NORM_KERNELS_H_
#define RILL_TRANSFORMS_STATISTICS_VEC_NORM_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace rill::transforms_internal {

// Elements that a call may ask to be kept on the stack.
inline constexpr int64_t kVecNormRoom = 512;

// Rows of a leaf [lanes, n], and their statistics. Statistics are 1 + 2 n
// numbers: the weight of all rows, the elements' means, and their sums of
// squared deviations.
struct VecNormCall {
  int64_t n = 0;
  int64_t rows = 0;  // > 0
  // Those with mask[row] != 0, from the first one on; empty: the first `rows`.
  absl::Span<const uint8_t> mask = {};
  int64_t first = 0;
  // Or these `rows` lanes, of at most kVecNormRoom elements together.
  const size_t* lanes = nullptr;
  double decay = 1;
  double eps = 0;       // The least deviation.
  bool frozen = false;  // Learns nothing and writes no statistics.
  const double* before = nullptr;
  // May be `before` where n <= kVecNormRoom, and then changes only where all is
  // finite.
  double* after = nullptr;
};

// Adds the rows to the statistics, and then sets the rows of `out` to
// (x - mean) / max(deviation, eps), in double. `out` may be `in`. False where a
// new mean or square is not finite, or one of `before` is no sum of squares.
// Thread-safety: thread-safe.
bool NormaliseRows(const VecNormCall& call, const float* in, float* out);
bool NormaliseRows(const VecNormCall& call, const double* in, double* out);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STATISTICS_VEC_NORM_KERNELS_H_
