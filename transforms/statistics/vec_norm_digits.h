// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STATISTICS_VEC_NORM_DIGITS_H_
#define RILL_TRANSFORMS_STATISTICS_VEC_NORM_DIGITS_H_

#include <bit>
#include <cstdint>

// A VecNorm's sums of one element and what they say, for host and devices: no
// Abseil, and functions are constexpr (device/kernels/kernel.h). Code that
// includes this is compiled without fused multiply-add.

namespace rill::transforms_internal {

// A VecNorm's statistics of one element.
struct VecNormElement {
  double weight = 0;
  double mean = 0;
  double squares = 0;  // The sum of squared deviations.
};

// The statistics of the rows of both.
constexpr VecNormElement Merge(const VecNormElement& a,
                               const VecNormElement& b) {
  if (a.weight == 0) return b;
  if (b.weight == 0) return a;
  const double weight = a.weight + b.weight;
  const double delta = a.mean - b.mean;
  return {.weight = weight,
          .mean = (a.weight * a.mean + b.weight * b.mean) / weight,
          .squares = a.squares + b.squares +
                     delta * delta * (a.weight * b.weight / weight)};
}

// ReturnScaling begins with it, as Gymnasium's and Stable-Baselines3's
// RunningMeanStd do.
inline constexpr VecNormElement kReturnPrior = {
    .weight = 1e-4, .mean = 0, .squares = 1e-4 * 1};

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
// False for a window that no rows have: a state may come from a file.
constexpr bool IsWindow(int64_t window) {
  return window >= 0 && window < kVecNormWindows;
}

// The first digit of window w counts multiples of 2^(26 (w - 17)), which is
// that window's unit. It holds numbers of up to 2^25 units, and squares begin
// at 2^25 squared units, so that the largest square is at most 2^25 of these.
inline constexpr int kVecNormDigitBits = 26;

constexpr double UnitOf(int64_t window) {
  constexpr int64_t kMiddleWindow = 17;
  // 2^exponent, by its bits.
  const int64_t exponent = kVecNormDigitBits * (window - kMiddleWindow);
  return std::bit_cast<double>((1023 + exponent) << 52);
}

// The least window that holds `largest`, from `window` on.
constexpr int64_t WindowOf(double largest, int64_t window) {
  for (double unit = UnitOf(window); largest > 0x1p25 * unit; unit *= 0x1p26) {
    ++window;
  }
  return window;
}

// Only sums of a damaged state overflow.
constexpr void AddWithoutOverflow(int64_t value, int64_t* sum) {
  *sum = static_cast<int64_t>(static_cast<uint64_t>(*sum) +
                              static_cast<uint64_t>(value));
}

// Drops the last digits for as many zeros in front.
constexpr void MoveDigits(int64_t by, int64_t size, int64_t* digits) {
  for (int64_t k = size; k-- > 0;) digits[k] = k >= by ? digits[k - by] : 0;
}

constexpr void MoveWindow(int64_t window, VecNormSums* sums) {
  const int64_t by = window - sums->window;
  MoveDigits(by, VecNormSums::kDigits, sums->digits);
  MoveDigits(2 * by, VecNormSums::kSquareDigits, sums->square_digits);
  sums->window = window;
}

// A number of 106 bits: the sum of both (Dekker, 1971).
struct VecNormPair {
  double high = 0;
  double low = 0;
};

// a + b, and its rounding error.
constexpr VecNormPair SumOf(double a, double b) {
  const double sum = a + b;
  const double of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

constexpr VecNormPair Add(const VecNormPair& a, const VecNormPair& b) {
  const VecNormPair high = SumOf(a.high, b.high);
  const VecNormPair low = SumOf(a.low, b.low);
  const VecNormPair sum = SumOf(high.high, high.low + low.high);
  return SumOf(sum.high, sum.low + low.low);
}

// Two halves of the digits of a number.
constexpr VecNormPair Split(double a) {
  const double far = a * (0x1p27 + 1);
  const double head = far - (far - a);
  return {head, a - head};
}

// a * b, and its rounding error.
constexpr VecNormPair ProductOf(double a, double b) {
  const VecNormPair x = Split(a);
  const VecNormPair y = Split(b);
  const double product = a * b;
  return {product,
          ((x.high * y.high - product) + x.high * y.low + x.low * y.high) +
              x.low * y.low};
}

constexpr VecNormPair Multiply(const VecNormPair& a, const VecNormPair& b) {
  const VecNormPair product = ProductOf(a.high, b.high);
  return SumOf(product.high, product.low + (a.high * b.low + a.low * b.high));
}

constexpr VecNormPair Divide(const VecNormPair& a, double b) {
  const double quotient = a.high / b;
  const VecNormPair rest = Add(a, ProductOf(quotient, -b));
  return SumOf(quotient, rest.high / b);
}

// The sum of the places, the first of which counts multiples of `unit`.
template <int kSize>
constexpr VecNormPair ValueOf(const int64_t (&digits)[kSize], double unit) {
  // From the last place on, what is beyond 26 bits goes into the place before.
  // So two places fit in a double.
  constexpr int64_t kBase = int64_t{1} << kVecNormDigitBits;
  int64_t place[7] = {};
  for (int k = 0; k < kSize; ++k) place[k + 1] = digits[k];
  for (int k = kSize; k > 0; --k) {
    AddWithoutOverflow(place[k] >> kVecNormDigitBits, &place[k - 1]);
    place[k] &= kBase - 1;
  }
  const auto two = [&place](int k) {
    return static_cast<double>(place[k] * kBase + place[k + 1]);
  };
  const VecNormPair last = SumOf(two(3) * 0x1p-78, two(5) * 0x1p-130);
  const VecNormPair middle = SumOf(two(1) * 0x1p-26, last.high);
  const VecNormPair first =
      SumOf(static_cast<double>(place[0]) * 0x1p26, middle.high);
  const VecNormPair sum =
      SumOf(first.high, first.low + (middle.low + last.low));
  return {sum.high * unit, sum.low * unit};
}

// Mean and squared deviations of the `rows` > 0 numbers, in double-double
// arithmetic: the deviation is off by less than 2^-50 of the largest number.
constexpr VecNormElement ElementOf(const VecNormSums& sums, int64_t rows) {
  const auto weight = static_cast<double>(rows);
  // In units, so that no square overflows.
  const VecNormPair sum = ValueOf(sums.digits, 1);
  const VecNormPair squares = ValueOf(sums.square_digits, 0x1p25);
  const VecNormPair mean = Divide(sum, weight);
  const VecNormPair product = Multiply(sum, mean);
  const VecNormPair around = Add(squares, {-product.high, -product.low});
  const double unit = UnitOf(sums.window);
  const double deviations = around.high + around.low;
  return {.weight = weight,
          .mean = (mean.high + mean.low) * unit,
          .squares = (deviations > 0 ? deviations : 0) * unit * unit};
}

// The digits of one number in a window that holds it, each added to its sum:
// what AddRows (vec_norm_sums.h) does for many.
template <int kSize>
constexpr void AddDigitsOf(double number, double unit,
                           int64_t (&digits)[kSize]) {
  for (int k = 0; k < kSize && number != 0; ++k, unit *= 0x1p-26) {
    // A sum near it has no bits below the unit, to which it is rounded.
    const double round = 0x1.8p52 * unit;
    const double digit = (number + round) - round;
    number -= digit;
    AddWithoutOverflow(static_cast<int64_t>(digit / unit), &digits[k]);
  }
}

// Adds a number and its square. `kHasLow`: it was no float32, so that its
// square has a rounding error.
template <bool kHasLow>
constexpr void AddNumber(double number, VecNormSums* sums) {
  const double unit = UnitOf(sums->window);
  const double square_unit = 0x1p25 * unit * unit;
  AddDigitsOf(number, unit, sums->digits);
  if constexpr (kHasLow) {
    const double square = number * number;
    const VecNormPair halves = Split(number);
    const double cross = halves.high * halves.low;
    const double low =
        ((halves.high * halves.high - square) + (cross + cross)) +
        halves.low * halves.low;
    AddDigitsOf(square, square_unit, sums->square_digits);
    AddDigitsOf(low, square_unit, sums->square_digits);
  } else {
    AddDigitsOf(number * number, square_unit, sums->square_digits);
  }
}

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STATISTICS_VEC_NORM_DIGITS_H_
