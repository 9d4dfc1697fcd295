// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STATISTICS_NORM_COLUMNS_H_
#define RILL_TRANSFORMS_STATISTICS_NORM_COLUMNS_H_

#include <bit>
#include <cstdint>

#include "rill/transforms/statistics/vec_norm_digits.h"

// Sums of columns by many threads, for kernels (device/kernels/kernel.h).
// Digits are summed as integers, so that the order of threads does not show:
// the sums are those of vec_norm_sums.h to the bit.

namespace rill::transforms_internal {

// The fault that a kernel found; the statistics then stay.
enum class NormFault : int64_t {
  kNone = 0,
  kValue = 1,    // One that is not finite or too large.
  kRows = 2,     // More than kMostVecNormRows.
  kUnsound = 3,  // Numbers of the state that no rows have.
};

// Rows of float32 or float64 [lanes, n], of which those with mask[lane] != 0
// count; null: all.
struct NormRows {
  const void* data = nullptr;
  bool is_double = false;
  int64_t n = 0;
  int64_t lanes = 0;
  const uint8_t* mask = nullptr;

  constexpr bool Counts(int64_t lane) const {
    return mask == nullptr || mask[lane] != 0;
  }
  constexpr double At(int64_t element) const {
    return is_double
               ? static_cast<const double*>(data)[element]
               : static_cast<double>(static_cast<const float*>(data)[element]);
  }
  constexpr int64_t bytes() const {
    return lanes * n * (is_double ? int64_t{8} : int64_t{4});
  }
};

constexpr double SizeOf(double x) { return x < 0 ? -x : x; }

// Whether a state's numbers are some rows', and so many more fit.
constexpr NormFault FaultOfRows(int64_t before, int64_t more) {
  if (before < 0 || before > kMostVecNormRows) return NormFault::kUnsound;
  return more > kMostVecNormRows - before ? NormFault::kRows : NormFault::kNone;
}

// The findings of a block's threads in one column, and their sums. Begins as
// NormColumn{}; trivial, as shared memory of devices is.
struct NormColumn {
  int64_t largest;  // The bits of a number that is not negative.
  int64_t digits[VecNormSums::kDigits];
  int64_t square_digits[VecNormSums::kSquareDigits];

  // Adds a thread's sums.
  template <typename Thread>
  constexpr void Add(const VecNormSums& sums) {
    for (int k = 0; k < VecNormSums::kDigits; ++k) {
      if (sums.digits[k] != 0) Thread::AtomicAdd(&digits[k], sums.digits[k]);
    }
    for (int k = 0; k < VecNormSums::kSquareDigits; ++k) {
      if (sums.square_digits[k] == 0) continue;
      Thread::AtomicAdd(&square_digits[k], sums.square_digits[k]);
    }
  }
  // The window of the sums so far and of these numbers.
  constexpr int64_t WindowFrom(int64_t window) const {
    return WindowOf(std::bit_cast<double>(largest), window);
  }
  // Adds the sums of all threads.
  constexpr void AddTo(VecNormSums* sums) const {
    const int64_t window = WindowFrom(sums->window);
    if (window > sums->window) MoveWindow(window, sums);
    for (int k = 0; k < VecNormSums::kDigits; ++k) {
      AddWithoutOverflow(digits[k], &sums->digits[k]);
    }
    for (int k = 0; k < VecNormSums::kSquareDigits; ++k) {
      AddWithoutOverflow(square_digits[k], &sums->square_digits[k]);
    }
  }
};

// One element of a state: 1 + kVecNormWords n numbers.
constexpr VecNormSums SumsAt(const int64_t* state, int64_t i) {
  const int64_t* const words = state + 1 + i * kVecNormWords;
  VecNormSums sums;
  sums.window = words[0];
  for (int k = 0; k < VecNormSums::kDigits; ++k) sums.digits[k] = words[1 + k];
  for (int k = 0; k < VecNormSums::kSquareDigits; ++k) {
    sums.square_digits[k] = words[1 + VecNormSums::kDigits + k];
  }
  return sums;
}
constexpr void SetSumsAt(const VecNormSums& sums, int64_t i, int64_t* state) {
  int64_t* const words = state + 1 + i * kVecNormWords;
  words[0] = sums.window;
  for (int k = 0; k < VecNormSums::kDigits; ++k) words[1 + k] = sums.digits[k];
  for (int k = 0; k < VecNormSums::kSquareDigits; ++k) {
    words[1 + VecNormSums::kDigits + k] = sums.square_digits[k];
  }
}
constexpr int64_t BytesOfState(int64_t n) {
  return (1 + n * kVecNormWords) * int64_t{sizeof(int64_t)};
}

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STATISTICS_NORM_COLUMNS_H_
