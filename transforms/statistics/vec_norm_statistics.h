// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STATISTICS_VEC_NORM_STATISTICS_H_
#define RILL_TRANSFORMS_STATISTICS_VEC_NORM_STATISTICS_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "rill/tensors/tensor.h"
#include "rill/transforms/statistics/vec_norm_digits.h"  // IWYU pragma: export

namespace rill::transforms_internal {

// The statistics of one leaf: a view of a state's tensor, contiguous float64 [1
// + 2 n].
struct VecNormStatistics {
  explicit VecNormStatistics(const Tensor& tensor)
      : numbers(tensor.data<double>()), n((tensor.num_elements() - 1) / 2) {}

  // False for numbers that no rows have: a state may come from a file.
  bool IsSound() const {
    // NaN and infinity are not within the largest number.
    constexpr double kMost = std::numeric_limits<double>::max();
    bool is_sound = weight() >= 0 && weight() <= kMost;
    for (int64_t i = 0; i < n; ++i) {
      is_sound &=
          std::abs(mean(i)) <= kMost && squares(i) >= 0 && squares(i) <= kMost;
    }
    return is_sound;
  }

  double& weight() const { return numbers[0]; }
  double& mean(int64_t i) const { return numbers[1 + i]; }
  double& squares(int64_t i) const { return numbers[1 + n + i]; }
  VecNormElement At(int64_t i) const { return {weight(), mean(i), squares(i)}; }

  double* numbers;
  int64_t n;
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STATISTICS_VEC_NORM_STATISTICS_H_
