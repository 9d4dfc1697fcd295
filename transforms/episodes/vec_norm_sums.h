// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_VEC_NORM_SUMS_H_
#define RILL_TRANSFORMS_EPISODES_VEC_NORM_SUMS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/episodes/vec_norm_statistics.h"

namespace rill::transforms_internal {

// Sums of numbers and of their squares that depend on the numbers alone, to the
// bit. Neither their order counts, nor how they are parted among sums that are
// merged later. A VecNorm with decay 1 has such sums for each element of a row.
//
// Each number is divided into digits of 26 bits, whose places are fixed powers
// of 2, and each place is summed apart as an integer, which does not round. The
// places of a window are kept: its first holds the largest number so far, and
// what lies below its last is dropped. A number's digits do not depend on the
// window, so a window that moves up drops what a higher one would have dropped.
// Indexed sums of Demmel and Nguyen (Parallel Reproducible Summation, 2015).
//
// Numerics: a number loses less than 2^-78, and a square less than 2^-103, of
//   the largest number or its square.
struct VecNormSums {
  static constexpr int kDigits = 4;
  static constexpr int kSquareDigits = 6;

  int64_t window = 0;  // In [0, kVecNormWindows).
  int64_t digits[kDigits] = {};
  int64_t square_digits[kSquareDigits] = {};
};

inline constexpr int64_t kVecNormWords = sizeof(VecNormSums) / sizeof(int64_t);
inline constexpr int64_t kVecNormWindows = 36;
// More rows might overflow a digit's sum.
inline constexpr int64_t kMostVecNormRows = int64_t{1} << 36;
// The largest number whose square the windows hold: about 2.6e148.
inline constexpr double kMostVecNormValue = 0x1p493;
// Rows of a call.
inline constexpr size_t kVecNormBlock = 256;

// Whether all elements of these rows of `in` [lanes, n] are within
// +-kMostVecNormValue.
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

// Mean and squared deviations of the `rows` > 0 numbers, in double-double
// arithmetic: the deviation is off by less than 2^-50 of the largest number.
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
      is_sound &= sums[i].window >= 0 && sums[i].window < kVecNormWindows;
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

#endif  // RILL_TRANSFORMS_EPISODES_VEC_NORM_SUMS_H_
