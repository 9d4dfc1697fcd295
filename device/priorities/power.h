// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_PRIORITIES_POWER_H_
#define RILL_DEVICE_PRIORITIES_POWER_H_

#include <bit>
#include <cstdint>

namespace rill::device_internal {

// samplers/prioritized/power.h for one base, for host and devices: the same
// operations in the same order, and so the same bits. Its contract holds here.
// Compile it without fused multiply-add.

// A polynomial of kCount coefficients from c[kBegin] on, lowest power first.
// Here powers[k] = x^(2^k).
template <int kBegin, int kCount>
constexpr double Series(const double* c, const double* powers) {
  if constexpr (kCount == 1) {
    return c[kBegin];
  } else {
    constexpr auto kLow =
        static_cast<int>(std::bit_floor(static_cast<unsigned>(kCount - 1)));
    constexpr int kPower = std::countr_zero(static_cast<unsigned>(kLow));
    return Series<kBegin, kLow>(c, powers) +
           powers[kPower] * Series<kBegin + kLow, kCount - kLow>(c, powers);
  }
}

template <int kCount>
constexpr double Polynomial(const double* c, double x) {
  const double x2 = x * x;
  const double x4 = x2 * x2;
  const double powers[] = {x, x2, x4, x4 * x4};
  return Series<0, kCount>(c, powers);
}

constexpr double Log2(double x) {
  constexpr double kSeries[] = {0x1.71547652b82fep+1, 0x1.ec709dc3a03fdp-1,
                                0x1.2776c50ef9bfep-1, 0x1.a61762a7aded9p-2,
                                0x1.484b13d7c02a9p-2, 0x1.0c9a84994022dp-2,
                                0x1.c68f568d31760p-3, 0x1.89f3b1694cffep-3,
                                0x1.5b9ac9b743f0dp-3, 0x1.3703c1f4d0ffep-3};
  constexpr uint64_t kRootOfHalf = 0x3FE6A09E667F3BCD;
  constexpr uint64_t kBias = 1024;
  constexpr double kShift = 0x1p52;
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t biased = (bits + ((kBias << 52) - kRootOfHalf)) >> 52;
  const double exponent =
      std::bit_cast<double>(biased | std::bit_cast<uint64_t>(kShift)) -
      (kShift + static_cast<double>(kBias));
  const double m = std::bit_cast<double>(bits - ((biased - kBias) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  return exponent + s * Polynomial<10>(kSeries, s * s);
}

constexpr double Exp2(double y) {
  constexpr double kSeries[] = {
      0x1.0000000000000p+0,  0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58fp-3,
      0x1.c6b08d704a0c0p-5,  0x1.3b2ab6fba4e77p-7,  0x1.5d87fe78a6731p-10,
      0x1.430912f86c787p-13, 0x1.ffcbfc588b0c7p-17, 0x1.62c0223a5c824p-20,
      0x1.b5253d395e7c4p-24, 0x1.e4cf5158b8ecap-28, 0x1.e8cac7351bb25p-32,
      0x1.c3bd650fc2986p-36, 0x1.816193166d0f9p-40};
  constexpr double kShift = 0x1.8p52;
  const double shifted = y + kShift;
  const double f = y - (shifted - kShift);
  const uint64_t power = std::bit_cast<uint64_t>(Polynomial<14>(kSeries, f));
  return std::bit_cast<double>(power +
                               (std::bit_cast<uint64_t>(shifted) << 52));
}

constexpr double Clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

constexpr double Power(double base, double exponent) {
  if (exponent == 1) return Clamp(base, 0x1p-1000, 0x1p960);
  return Exp2(Clamp(Log2(base) * exponent, -1000.0, 960.0));
}

}  // namespace rill::device_internal

#endif  // RILL_DEVICE_PRIORITIES_POWER_H_
