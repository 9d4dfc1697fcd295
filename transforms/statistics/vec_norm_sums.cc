// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/statistics/vec_norm_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/transforms/statistics/vec_norm_sums.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::transforms_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
using Vector = hn::Vec<D>;
// Zeros behind a block's numbers make them fill pairs of vectors.
constexpr size_t kStep = 16;

// Ascending rows without others between them.
bool AreConsecutive(absl::Span<const size_t> rows) {
  return !rows.empty() && rows.back() - rows.front() + 1 == rows.size();
}

// Takes the digits of the numbers one after the other, from the one whose unit
// is given, and adds each to its sum. Leaves of the numbers what is below. No
// number is beyond `largest`.
void AddDigits(double* numbers, size_t size, double unit, double largest,
               int count, int64_t* digits) {
  const D d;
  for (int k = 0; k < count; ++k, unit *= 0x1p-26) {
    if (largest <= 0.5 * unit) continue;  // This digit of all is 0.
    // A sum near it has no bits below the unit, to which it is rounded.
    const Vector round = hn::Set(d, 0x1.8p52 * unit);
    Vector any = hn::Zero(d);
    const auto take = [&](size_t i) HWY_ATTR {
      const Vector number = hn::LoadU(d, numbers + i);
      const Vector digit = hn::Sub(hn::Add(number, round), round);
      const Vector rest = hn::Sub(number, digit);
      any = hn::Or(any, rest);
      hn::StoreU(rest, d, numbers + i);
      return digit;
    };
    // Two sums, as an addition waits for the one before.
    Vector even = hn::Zero(d);
    Vector odd = hn::Zero(d);
    for (size_t i = 0; i < size; i += 2 * hn::Lanes(d)) {
      even = hn::Add(even, take(i));
      odd = hn::Add(odd, take(i + hn::Lanes(d)));
    }
    // Exact: at most 2^8 digits of 2^25 units.
    const double sum = hn::ReduceSum(d, hn::Add(even, odd));
    AddWithoutOverflow(static_cast<int64_t>(sum / unit), &digits[k]);
    if (hn::AllTrue(d, hn::Eq(any, hn::Zero(d)))) return;
  }
}

// squares + low = numbers^2. The low parts are rounding errors of the squares
// (Dekker, 1971), and 0 for numbers that were float32.
template <bool kHasLow>
void Square(const double* numbers, size_t size, double* squares, double* low) {
  const D d;
  for (size_t i = 0; i < size; i += hn::Lanes(d)) {
    const Vector number = hn::LoadU(d, numbers + i);
    const Vector square = hn::Mul(number, number);
    hn::StoreU(square, d, squares + i);
    if constexpr (kHasLow) {
      const Vector far = hn::Mul(number, hn::Set(d, 0x1p27 + 1));
      const Vector head = hn::Sub(far, hn::Sub(far, number));
      const Vector tail = hn::Sub(number, head);
      const Vector cross = hn::Mul(head, tail);
      const Vector error =
          hn::Add(hn::Sub(hn::Mul(head, head), square), hn::Add(cross, cross));
      hn::StoreU(hn::Add(error, hn::Mul(tail, tail)), d, low + i);
    }
  }
}

double LargestOf(const double* numbers, size_t size) {
  const D d;
  Vector largest = hn::Zero(d);
  for (size_t i = 0; i < size; i += hn::Lanes(d)) {
    largest = hn::Max(largest, hn::Abs(hn::LoadU(d, numbers + i)));
  }
  return hn::ReduceMax(d, largest);
}

template <typename T>
void AddAll(const T* in, int64_t n, absl::Span<const size_t> rows,
            VecNormSums* sums) {
  const size_t size = hwy::RoundUpTo(rows.size(), kStep);
  double numbers[kVecNormBlock];
  double squares[kVecNormBlock];
  double low[kVecNormBlock];
  std::fill(numbers + rows.size(), numbers + size, 0);
  for (int64_t i = 0; i < n; ++i, ++sums) {
    if (AreConsecutive(rows)) {
      const T* from = in + static_cast<int64_t>(rows[0]) * n + i;
      for (size_t row = 0; row < rows.size(); ++row, from += n) {
        numbers[row] = static_cast<double>(*from);
      }
    } else {
      for (size_t row = 0; row < rows.size(); ++row) {
        numbers[row] =
            static_cast<double>(in[static_cast<int64_t>(rows[row]) * n + i]);
      }
    }
    const double largest = LargestOf(numbers, size);
    const int64_t window = WindowOf(largest, sums->window);
    if (window > sums->window) MoveWindow(window, sums);
    const double unit = UnitOf(window);
    constexpr bool kHasLow = sizeof(T) > sizeof(float);
    Square<kHasLow>(numbers, size, squares, low);
    const double square_unit = 0x1p25 * unit * unit;
    const double largest_square = largest * largest;
    AddDigits(numbers, size, unit, largest, VecNormSums::kDigits, sums->digits);
    AddDigits(squares, size, square_unit, largest_square,
              VecNormSums::kSquareDigits, sums->square_digits);
    if constexpr (kHasLow) {
      AddDigits(low, size, square_unit, 0x1p-53 * largest_square,
                VecNormSums::kSquareDigits, sums->square_digits);
    }
  }
}

template <typename T>
bool AreAllSummable(const T* in, int64_t n, absl::Span<const size_t> rows) {
  bool are_summable = true;
  if (AreConsecutive(rows)) {
    const hn::ScalableTag<T> d;
    // Every finite float is within it.
    const auto most =
        hn::Set(d, static_cast<T>(std::min<double>(
                       kMostVecNormValue, std::numeric_limits<T>::max())));
    const T* const begin = in + static_cast<int64_t>(rows[0]) * n;
    const size_t size = rows.size() * static_cast<size_t>(n);
    auto are_within = hn::Eq(most, most);
    size_t i = 0;
    for (; i + hn::Lanes(d) <= size; i += hn::Lanes(d)) {
      are_within =
          hn::And(are_within, hn::Le(hn::Abs(hn::LoadU(d, begin + i)), most));
    }
    are_summable = hn::AllTrue(d, are_within);
    for (; i < size; ++i) {
      are_summable &=
          std::abs(static_cast<double>(begin[i])) <= kMostVecNormValue;
    }
    return are_summable;
  }
  for (const size_t row : rows) {
    const T* const begin = in + static_cast<int64_t>(row) * n;
    for (int64_t i = 0; i < n; ++i) {
      // Also false for NaN.
      are_summable &=
          std::abs(static_cast<double>(begin[i])) <= kMostVecNormValue;
    }
  }
  return are_summable;
}

// HWY_EXPORT takes no templates.
void AddFloats(const float* in, int64_t n, absl::Span<const size_t> rows,
               VecNormSums* sums) {
  AddAll(in, n, rows, sums);
}
void AddDoubles(const double* in, int64_t n, absl::Span<const size_t> rows,
                VecNormSums* sums) {
  AddAll(in, n, rows, sums);
}
bool AreFloats(const float* in, int64_t n, absl::Span<const size_t> rows) {
  return AreAllSummable(in, n, rows);
}
bool AreDoubles(const double* in, int64_t n, absl::Span<const size_t> rows) {
  return AreAllSummable(in, n, rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::transforms_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::transforms_internal {
namespace {

HWY_EXPORT(AddFloats);
HWY_EXPORT(AddDoubles);
HWY_EXPORT(AreFloats);
HWY_EXPORT(AreDoubles);

int64_t Negative(int64_t value) {
  return static_cast<int64_t>(-static_cast<uint64_t>(value));
}

}  // namespace

bool AreSummable(const float* in, int64_t n, absl::Span<const size_t> rows) {
  return HWY_DYNAMIC_DISPATCH(AreFloats)(in, n, rows);
}
bool AreSummable(const double* in, int64_t n, absl::Span<const size_t> rows) {
  return HWY_DYNAMIC_DISPATCH(AreDoubles)(in, n, rows);
}
void AddRows(const float* in, int64_t n, absl::Span<const size_t> rows,
             VecNormSums* sums) {
  HWY_DYNAMIC_DISPATCH(AddFloats)(in, n, rows, sums);
}
void AddRows(const double* in, int64_t n, absl::Span<const size_t> rows,
             VecNormSums* sums) {
  HWY_DYNAMIC_DISPATCH(AddDoubles)(in, n, rows, sums);
}

void MergeSums(const VecNormSums& other, VecNormSums* sums) {
  VecNormSums moved = other;
  if (moved.window < sums->window) MoveWindow(sums->window, &moved);
  if (moved.window > sums->window) MoveWindow(moved.window, sums);
  for (int k = 0; k < VecNormSums::kDigits; ++k) {
    AddWithoutOverflow(moved.digits[k], &sums->digits[k]);
  }
  for (int k = 0; k < VecNormSums::kSquareDigits; ++k) {
    AddWithoutOverflow(moved.square_digits[k], &sums->square_digits[k]);
  }
}

bool SubtractSums(const VecNormSums& other, VecNormSums* sums) {
  if (other.window > sums->window) return false;
  VecNormSums moved = other;
  MoveWindow(sums->window, &moved);
  for (int64_t& digit : moved.digits) digit = Negative(digit);
  for (int64_t& digit : moved.square_digits) digit = Negative(digit);
  MergeSums(moved, sums);
  return true;
}

VecNormElement StatisticsOf(const VecNormSums& sums, int64_t rows) {
  return ElementOf(sums, rows);
}

}  // namespace rill::transforms_internal
#endif  // HWY_ONCE
