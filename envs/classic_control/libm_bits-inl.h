// SPDX-License-Identifier: Apache-2.0
// Vectors of what libm gives for each element, bit for bit. For files that
// Highway compiles for each instruction set, with -ffp-contract=off.
//
// libm rounds nearly always to the nearest double: glibc's sine and cosine are
// within 0.518 units of the last place, its pow(x, 2) is within 0.51. Here the
// value is computed to a few more bits (Dekker, 1971). Unless it is so near the
// middle between two doubles that libm may take the other one, both give the
// nearest; one in thirty asks libm (Ziv, 1991). Without a fused multiply-add
// all ask libm.
//
// Include it after hwy/highway.h, as Highway's own *-inl.h.
#if defined(RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_
#undef RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_
#else
#define RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::envs_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Functions of vectors with tag D.
template <class D>
class LibmBits {
 public:
  using V = hn::Vec<D>;
  using M = hn::Mask<D>;

  static V Constant(double value) { return hn::Set(D(), value); }

  struct SineCosine {
    V sine, cosine;
  };
  static HWY_INLINE SineCosine SinCos(V x) { return Compute<true, true>(x); }
  // The same, and quicker, where |x| < pi / 4; beyond it, as slow as libm.
  static HWY_INLINE SineCosine SinCosOfSmall(V x) {
    if constexpr (!kIsComputed) return SinCos(x);
    const RoundedSineCosine near = SineCosineNearZero(x, hn::Zero(D()));
    const M is_fit = hn::And(hn::Lt(hn::Abs(x), Constant(0.785)),
                             hn::Gt(hn::Abs(x), Constant(0x1p-20)));
    return {AskLibm(hn::And(is_fit, near.sine.is_sure), x, near.sine.value,
                    LibmSin),
            AskLibm(hn::And(is_fit, near.cosine.is_sure), x, near.cosine.value,
                    LibmCos)};
  }
  static HWY_INLINE V Sin(V x) { return Compute<true, false>(x).sine; }
  static HWY_INLINE V Cos(V x) { return Compute<false, true>(x).cosine; }

  // std::pow(x, 2), whose bits are not always those of x * x.
  static HWY_INLINE V PowTwo(V x) {
    const V square = hn::Mul(x, x);
    // libm is within 0.509 + |log(x^2)| 2^-14 units of the last place.
    const M is_fit = hn::And(hn::Gt(square, Constant(0x1p-30)),
                             hn::Lt(square, Constant(0x1p20)));
    const M is_sure = hn::Eq(
        hn::Add(square, hn::Mul(SquareError(x, square), Constant(1.024))),
        square);
    return AskLibm(hn::And(is_fit, is_sure), x, square, LibmPowTwo);
  }

 private:
  // One element alone is quicker in libm.
  static constexpr bool kIsComputed = HWY_NATIVE_FMA && HWY_MAX_LANES_D(D) > 1;

  static double LibmSin(double x) { return std::sin(x); }
  static double LibmCos(double x) { return std::cos(x); }
  static double LibmPowTwo(double x) {
    volatile double two = 2;  // Compilers make x * x of a constant.
    return std::pow(x, two);
  }

  // x^2 - square, exactly.
  static HWY_INLINE V SquareError(V x, V square) {
    if constexpr (HWY_NATIVE_FMA) return hn::MulSub(x, x, square);
    const V split = hn::Mul(x, Constant(134217729));  // 2^27 + 1
    const V high = hn::Sub(split, hn::Sub(split, x));
    const V low = hn::Sub(x, high);
    const V high_low = hn::Mul(high, low);
    return hn::Add(hn::Add(hn::Sub(hn::Mul(high, high), square),
                           hn::Add(high_low, high_low)),
                   hn::Mul(low, low));
  }

  // function(x) of each element.
  template <typename Function>
  static HWY_INLINE V Elements(V x, const Function& function) {
    HWY_ALIGN double values[HWY_MAX_LANES_D(D)];
    hn::Store(x, D(), values);
    for (size_t i = 0; i < hn::Lanes(D()); ++i) values[i] = function(values[i]);
    return hn::Load(D(), values);
  }

  // `value`, with function(x) in the elements that are not sure.
  template <typename Function>
  static HWY_INLINE V AskLibm(M is_sure, V x, V value,
                              const Function& function) {
    if (HWY_LIKELY(hn::AllTrue(D(), is_sure))) return value;
    HWY_ALIGN double xs[HWY_MAX_LANES_D(D)];
    HWY_ALIGN double values[HWY_MAX_LANES_D(D)];
    HWY_ALIGN double sure[HWY_MAX_LANES_D(D)];
    hn::Store(x, D(), xs);
    hn::Store(value, D(), values);
    hn::Store(hn::IfThenElseZero(is_sure, Constant(1)), D(), sure);
    for (size_t i = 0; i < hn::Lanes(D()); ++i) {
      if (sure[i] == 0) values[i] = function(xs[i]);
    }
    return hn::Load(D(), values);
  }

  // A number as the sum of two doubles.
  struct Pair {
    V high, low;
  };

  // a + b; |a| >= |b|.
  static HWY_INLINE Pair FastTwoSum(V a, V b) {
    const V sum = hn::Add(a, b);
    return {sum, hn::Add(hn::Sub(a, sum), b)};
  }

  // c[0] + c[1] x + c[2] x^2 + ...
  template <size_t kCount>
  static HWY_INLINE V Horner(const double (&c)[kCount], V x) {
    V sum = Constant(c[kCount - 1]);
    for (size_t i = kCount - 1; i-- > 0;) {
      sum = hn::MulAdd(sum, x, Constant(c[i]));
    }
    return sum;
  }

  // The nearest double to a number, and whether libm gives the same. `slack`:
  // what libm and the number may be off by together, in units of the last
  // place.
  struct Rounded {
    V value;
    M is_sure;
  };
  static HWY_INLINE Rounded Round(const Pair& number, V slack) {
    const hn::RebindToUnsigned<D> bits;
    const V value = hn::Add(number.high, number.low);
    const V power = hn::BitCast(
        D(),
        hn::And(hn::BitCast(bits, value), hn::Set(bits, 0x7FF0000000000000)));
    const V window = hn::Mul(power, slack);
    return {value, hn::Eq(hn::Add(number.high, hn::Sub(number.low, window)),
                          hn::Add(number.high, hn::Add(number.low, window)))};
  }

  // Sine and cosine of r + low, where |r| < 0.786 and |low| is at most half a
  // unit of r's last place.
  struct RoundedSineCosine {
    Rounded sine, cosine;
  };
  static HWY_INLINE RoundedSineCosine SineCosineNearZero(V r, V low) {
    // Powers of r^2 for (sin(r) - r + r^3 / 6) / r^5, and for
    // (cos(r) - 1 + r^2 / 2 - r^4 / 24) / r^6. Chebyshev interpolation gives
    // them; the results are within 2^-64.
    static constexpr double kSine[] = {
        0x1.1111111111111p-7,   -0x1.a01a01a019ed4p-13, 0x1.71de3a550c541p-19,
        -0x1.ae64553324628p-26, 0x1.61225a3142211p-33,  -0x1.ab933c0e30ad0p-41};
    static constexpr double kCosine[] = {
        -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d06p-16,  -0x1.27e4fb77125c5p-22,
        0x1.1eed8deac3d25p-29,  -0x1.9394b8bd3b322p-37, 0x1.ab77954421f46p-45};
    constexpr double kSixth = 0x1.5555555555555p-3;
    constexpr double kSixthLow = 0x1.5555555555555p-57;
    constexpr double kTwentyFourth = 0x1.5555555555555p-5;
    constexpr double kTwentyFourthLow = 0x1.5555555555555p-59;

    const V r2 = hn::Mul(r, r);
    const V r2_low = hn::MulSub(r, r, r2);
    const V r3 = hn::Mul(r, r2);
    const V r3_low = hn::MulAdd(r, r2_low, hn::MulSub(r, r2, r3));
    const V r4 = hn::Mul(r2, r2);
    const V r4_low =
        hn::MulAdd(hn::Add(r2, r2), r2_low, hn::MulSub(r2, r2, r4));
    const Pair near_cosine =
        FastTwoSum(Constant(1), hn::Mul(r2, Constant(-0.5)));

    const V cubic = hn::Mul(r3, Constant(-kSixth));
    V sine_low = hn::MulSub(r3, Constant(-kSixth), cubic);
    sine_low = hn::MulAdd(r3, Constant(-kSixthLow), sine_low);
    sine_low = hn::MulAdd(r3_low, Constant(-kSixth), sine_low);
    sine_low = hn::MulAdd(hn::Mul(r3, r2), Horner(kSine, r2), sine_low);
    sine_low = hn::MulAdd(low, near_cosine.high, sine_low);
    Pair sine = FastTwoSum(r, cubic);

    const V quartic = hn::Mul(r4, Constant(kTwentyFourth));
    V cosine_low = hn::MulAdd(r2_low, Constant(-0.5), near_cosine.low);
    cosine_low =
        hn::Add(cosine_low, hn::MulSub(r4, Constant(kTwentyFourth), quartic));
    cosine_low = hn::MulAdd(r4_low, Constant(kTwentyFourth), cosine_low);
    cosine_low = hn::MulAdd(r4, Constant(kTwentyFourthLow), cosine_low);
    cosine_low = hn::MulAdd(hn::Mul(r4, r2), Horner(kCosine, r2), cosine_low);
    cosine_low = hn::NegMulAdd(low, sine.high, cosine_low);
    Pair cosine = FastTwoSum(near_cosine.high, quartic);

    sine.low = hn::Add(sine.low, sine_low);
    cosine.low = hn::Add(cosine.low, cosine_low);
    // The above is within 0.001 where |r| < 1/2, and within 0.014 at the end.
    // libm's sine is within 0.0063 where |r| < 1/8, 0.016 elsewhere; its cosine
    // within 0.0035.
    constexpr double kUnit = 0x1p-52;
    const V own = hn::Mul(r2, Constant(0.02 * kUnit));
    const V sine_slack =
        hn::IfThenElse(hn::Lt(r2, Constant(0x1p-6)), Constant(0.009 * kUnit),
                       hn::Add(own, Constant(0.018 * kUnit)));
    const V cosine_slack = hn::Add(own, Constant(0.006 * kUnit));
    return {Round(sine, sine_slack), Round(cosine, cosine_slack)};
  }

  // std::sin and std::cos. Those of kWanted* alone are asked of libm.
  template <bool kWantedSine, bool kWantedCosine>
  static HWY_INLINE SineCosine Compute(V x) {
    if constexpr (!kIsComputed) {
      return {kWantedSine ? Elements(x, LibmSin) : x,
              kWantedCosine ? Elements(x, LibmCos) : x};
    }
    const hn::RebindToSigned<D> whole;
    // pi / 2 in parts of 33, 33 and 53 bits (Cody and Waite, 1980). Their
    // products with the number of quarter turns are exact, or far below what is
    // wanted.
    constexpr double kParts[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34,
                                 0x1.3198a2e037073p-69};
    constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
    const V shift = Constant(0x1.8p52);  // Whose last bits are whole numbers.
    const V shifted = hn::MulAdd(x, Constant(kTwoOverPi), shift);
    const V turns = hn::Sub(shifted, shift);
    const auto quadrant = hn::BitCast(whole, shifted);
    const V high = hn::NegMulAdd(turns, Constant(kParts[0]), x);
    const Pair rest = FastTwoSum(high, hn::Mul(turns, Constant(-kParts[1])));
    const Pair r = FastTwoSum(
        rest.high, hn::NegMulAdd(turns, Constant(kParts[2]), rest.low));

    const RoundedSineCosine near = SineCosineNearZero(r.high, r.low);
    const M is_fit = hn::And(hn::Le(hn::Abs(x), Constant(512)),
                             hn::Gt(hn::Abs(r.high), Constant(0x1p-20)));
    const auto one = hn::Set(whole, 1);
    const auto two = hn::Set(whole, 2);
    const M swaps = hn::RebindMask(D(), hn::Eq(hn::And(quadrant, one), one));
    const auto sign_of = [&](auto turn) HWY_ATTR {
      return hn::BitCast(D(), hn::ShiftLeft<62>(hn::And(turn, two)));
    };
    const auto choose = [&](const Rounded& even, const Rounded& odd, V sign,
                            bool is_wanted, auto function) HWY_ATTR {
      const V value =
          hn::Xor(hn::IfThenElse(swaps, odd.value, even.value), sign);
      if (!is_wanted) return value;
      const M is_sure =
          hn::Or(hn::And(swaps, odd.is_sure), hn::AndNot(swaps, even.is_sure));
      return AskLibm(hn::And(is_fit, is_sure), x, value, function);
    };
    return {
        choose(near.sine, near.cosine, sign_of(quadrant), kWantedSine, LibmSin),
        choose(near.cosine, near.sine, sign_of(hn::Add(quadrant, one)),
               kWantedCosine, LibmCos)};
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace rill::envs_internal
HWY_AFTER_NAMESPACE();

#endif  // RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_
