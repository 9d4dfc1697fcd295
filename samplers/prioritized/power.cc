// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized/power.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/samplers/prioritized/power.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::samplers_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using U = hn::RebindToUnsigned<D>;
using V = hn::Vec<D>;
using VU = hn::Vec<U>;

// A polynomial of kCount coefficients from c[kBegin] on, lowest power first. It
// is low + x^p high for the largest power of two p < kCount (Estrin), so that
// few additions wait for one another. Here powers[k] = x^(2^k).
template <size_t kBegin, size_t kCount>
HWY_INLINE V Series(const double* c, const V (&powers)[4]) {
  if constexpr (kCount == 1) {
    return hn::Set(D(), c[kBegin]);
  } else {
    constexpr size_t kLow = std::bit_floor(kCount - 1);
    return hn::Add(Series<kBegin, kLow>(c, powers),
                   hn::Mul(powers[std::countr_zero(kLow)],
                           Series<kBegin + kLow, kCount - kLow>(c, powers)));
  }
}

// At most 16 coefficients, since four powers of x are made.
template <size_t kCount>
HWY_INLINE V Polynomial(const double (&c)[kCount], V x) {
  static_assert(kCount <= 16);
  const V x2 = hn::Mul(x, x);
  const V x4 = hn::Mul(x2, x2);
  return Series<0, kCount>(c, {x, x2, x4, hn::Mul(x4, x4)});
}

// The logarithm of x = 2^e m with m in [sqrt(1/2), sqrt(2)). It uses
// log2(m) = s P(s^2) for s = (m - 1) / (m + 1). Coefficient i of P is
// 2 / ln(2) / (2 i + 1).
HWY_INLINE V Log2(V x) {
  static constexpr double kSeries[] = {
      0x1.71547652b82fep+1, 0x1.ec709dc3a03fdp-1, 0x1.2776c50ef9bfep-1,
      0x1.a61762a7aded9p-2, 0x1.484b13d7c02a9p-2, 0x1.0c9a84994022dp-2,
      0x1.c68f568d31760p-3, 0x1.89f3b1694cffep-3, 0x1.5b9ac9b743f0dp-3,
      0x1.3703c1f4d0ffep-3};
  // Adding the bias less the bits of sqrt(1/2) moves the border of an exponent
  // from 1 to sqrt(1/2). So m lies around 1, where the series is short.
  constexpr uint64_t kRootOfHalf = 0x3FE6A09E667F3BCD;
  constexpr uint64_t kBias = 1024;   // Keeps exponents above 0.
  constexpr double kShift = 0x1p52;  // Whose last bits are whole numbers.
  const VU bits = hn::BitCast(U(), x);
  const VU biased = hn::ShiftRight<52>(
      hn::Add(bits, hn::Set(U(), (kBias << 52) - kRootOfHalf)));
  // An integer below 2^52 in the last bits of 2^52 becomes a double by one
  // subtraction, on processors that cannot convert 64-bit integers too.
  const V exponent = hn::Sub(
      hn::BitCast(D(), hn::Or(biased, hn::BitCast(U(), hn::Set(D(), kShift)))),
      hn::Set(D(), kShift + kBias));
  const V m = hn::BitCast(
      D(),
      hn::Sub(bits, hn::ShiftLeft<52>(hn::Sub(biased, hn::Set(U(), kBias)))));
  const V one = hn::Set(D(), 1.0);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  return hn::Add(exponent, hn::Mul(s, Polynomial(kSeries, hn::Mul(s, s))));
}

// y = n + f with n whole and |f| <= 1/2; 2^f by the series of
// ln(2)^k / k!, k = 0, 1, ...
HWY_INLINE V Exp2(V y) {
  static constexpr double kSeries[] = {
      0x1.0000000000000p+0,  0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58fp-3,
      0x1.c6b08d704a0c0p-5,  0x1.3b2ab6fba4e77p-7,  0x1.5d87fe78a6731p-10,
      0x1.430912f86c787p-13, 0x1.ffcbfc588b0c7p-17, 0x1.62c0223a5c824p-20,
      0x1.b5253d395e7c4p-24, 0x1.e4cf5158b8ecap-28, 0x1.e8cac7351bb25p-32,
      0x1.c3bd650fc2986p-36, 0x1.816193166d0f9p-40};
  constexpr double kShift = 0x1.8p52;  // Its last bits are n, also below 0.
  // Adding 1.5 * 2^52 rounds y to a whole number n. Its bits, moved by 52, add
  // n to the exponent of 2^f.
  const V shift = hn::Set(D(), kShift);
  const V shifted = hn::Add(y, shift);
  const V f = hn::Sub(y, hn::Sub(shifted, shift));
  const VU power = hn::BitCast(U(), Polynomial(kSeries, f));
  return hn::BitCast(
      D(), hn::Add(power, hn::ShiftLeft<52>(hn::BitCast(U(), shifted))));
}

void PowerImpl(const double* bases, double exponent, double* powers,
               size_t count) {
  const size_t lanes = hn::Lanes(D());
  for (size_t i = 0; i < count; i += lanes) {
    const size_t left = count - i;
    const V base = left < lanes ? hn::LoadN(D(), bases + i, left)
                                : hn::LoadU(D(), bases + i);
    // y is limited before Exp2, which adds it to exponent bits and knows
    // neither overflow nor subnormal numbers.
    const V y = hn::Mul(Log2(base), hn::Set(D(), exponent));
    const V power =
        Exp2(hn::Min(hn::Max(y, hn::Set(D(), -1000.0)), hn::Set(D(), 960.0)));
    if (left < lanes) {
      hn::StoreN(power, D(), powers + i, left);
    } else {
      hn::StoreU(power, D(), powers + i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::samplers_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::samplers_internal {

HWY_EXPORT(PowerImpl);

void Power(absl::Span<const double> bases, double exponent,
           absl::Span<double> powers) {
  // Exact, where a logarithm and its power would round.
  if (exponent == 1) {
    std::transform(bases.begin(), bases.end(), powers.begin(), [](double base) {
      return std::clamp(base, kMinPower, kMaxPower);
    });
    return;
  }
  HWY_DYNAMIC_DISPATCH(PowerImpl)
  (bases.data(), exponent, powers.data(), bases.size());
}

}  // namespace rill::samplers_internal
#endif  // HWY_ONCE
