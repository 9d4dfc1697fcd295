// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STATISTICS_VEC_NORM_SUMS_H_
#define RILL_TRANSFORMS_STATISTICS_VEC_NORM_SUMS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/statistics/vec_norm_digits.h"  // IWYU pragma: export

namespace rill::transforms_internal {

// Rows of a call.
inline constexpr size_t kVecNormBlock = 256;

// Whether all elements of these rows of `in` [lanes, n] are within
// +-kMostVecNormValue. Rows ascend, here and below.
bool AreSummable(const float* in, int64_t n, absl::Span<const size_t> rows);
bool AreSummable(const double* in, int64_t n, absl::Span<const size_t> rows);

// Adds the elements of these rows, of which AreSummable says true, to the sums
// of n elements. At most kVecNormBlock rows.
// Cost: some 40 vector operations for each vector of numbers.
// Thread-safety: thread-safe.
void AddRows(const float* in, int64_t n, absl::Span<const size_t> rows,
             VecNormSums* sums);
void AddRows(const double* in, int64_t n, absl::Span<const size_t> rows,
             VecNormSums* sums);

// Adds the numbers of `other`.
void MergeSums(const VecNormSums& other, VecNormSums* sums);
// Takes them away again, and leaves the window where it is. False, and the sums
// stay, where theirs is below that of `other`: these were never added.
bool SubtractSums(const VecNormSums& other, VecNormSums* sums);

// ElementOf, compiled as its header wants it.
VecNormElement StatisticsOf(const VecNormSums& sums, int64_t rows);

// The sums of one leaf: a view of a state's tensor, contiguous int64 [1 +
// kVecNormWords n].
struct VecNormSumsView {
  explicit VecNormSumsView(const Tensor& tensor)
      : rows(tensor.data<int64_t>()),
        sums(reinterpret_cast<VecNormSums*>(rows + 1)),
        n((tensor.num_elements() - 1) / kVecNormWords) {}

  // False for numbers that no rows have: a state may come from a file.
  bool IsSound() const {
    bool is_sound = *rows >= 0 && *rows <= kMostVecNormRows;
    for (int64_t i = 0; i < n; ++i) {
      is_sound &= IsWindow(sums[i].window);
    }
    return is_sound;
  }
  // Zeros before the first row.
  VecNormElement At(int64_t i) const {
    return *rows == 0 ? VecNormElement() : StatisticsOf(sums[i], *rows);
  }

  int64_t* rows;  // Their number.
  VecNormSums* sums;
  int64_t n;
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STATISTICS_VEC_NORM_SUMS_H_
