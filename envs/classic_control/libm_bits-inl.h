// SPDX-License-Identifier: Apache-2.0
// Vectors of what libm gives for each element, bit for bit. For files that
// Highway compiles for each instruction set, with -ffp-contract=off.
//
// libm rounds nearly always to the nearest double: glibc's sine and cosine are
// within 0.518 units of the last place, its pow(x, 2) is within 0.51. Here the
// value is computed to a few more bits (Dekker, 1971). Unless it is so near the
// middle between two doubles that libm may take the other one, both give the
// nearest; one in fifty asks libm (Ziv, 1991). Without a fused multiply-add all
// ask libm.
//
// Include it after hwy/highway.h, as Highway's own *-inl.h.
#if defined(RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_
#undef RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_
#else
#define RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_
#endif

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

  // The functions of `count` elements: whole vectors, at most kMaxCount. Arrays
  // do not overlap. libm is asked behind the loop over vectors: a call in it
  // would end what the processor does of the next vectors meanwhile.
  static constexpr size_t kMaxCount = 256;
  static void SinCos(const double* x, size_t count, double* sine,
                     double* cosine) {
    Compute</*kWantsSine=*/true>(x, count, sine, cosine);
  }
  static void Cos(const double* x, size_t count, double* to) {
    Compute</*kWantsSine=*/false>(x, count, nullptr, to);
  }
  // std::pow(x, 2), whose bits are not always those of x * x.
  static void PowTwo(const double* x, size_t count, double* to) {
    Unsure unsure;
    for (size_t i = 0; i < count; i += hn::Lanes(D())) {
      const Rounded square = RoundedSquare(hn::LoadU(D(), x + i));
      hn::StoreU(square.value, D(), to + i);
      unsure.Add(i, square.is_sure);
    }
    unsure.Ask(count, x, to, LibmPowTwo);
  }

  // Sine and cosine of one vector, quick where |x| < pi / 4; beyond it, as slow
  // as libm.
  struct SineCosine {
    V sine, cosine;
  };
  static HWY_INLINE SineCosine SinCosOfSmall(V x) {
    if constexpr (!kIsComputed) {
      return {Elements(x, LibmSin), Elements(x, LibmCos)};
    }
    const NearSineCosine near = SineCosineNearZero(x, hn::Zero(D()));
    const Rounded sine = Round(near.sine);
    const Rounded cosine = Round(near.cosine);
    const M is_fit = hn::And(hn::Lt(hn::Abs(x), Constant(0.785)),
                             hn::Gt(hn::Abs(x), Constant(0x1p-20)));
    return {AskLibm(hn::And(is_fit, sine.is_sure), x, sine.value, LibmSin),
            AskLibm(hn::And(is_fit, cosine.is_sure), x, cosine.value, LibmCos)};
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

  // a + b * c, rounded in its error alone; |a| >= 2 |b * c|.
  static HWY_INLINE Pair AddProduct(V a, V b, double c) {
    const V sum = hn::MulAdd(b, Constant(c), a);
    return {sum, hn::MulAdd(b, Constant(c), hn::Sub(a, sum))};
  }

  // c[0] + c[1] x + ... + c[5] x^5; x2 is x^2.
  static HWY_INLINE V Polynomial(const double (&c)[6], V x, V x2) {
    const auto pair = [&](size_t i) HWY_ATTR {
      return hn::MulAdd(Constant(c[i + 1]), x, Constant(c[i]));
    };
    return hn::MulAdd(hn::MulAdd(pair(4), x2, pair(2)), x2, pair(0));
  }

  // A number, and what libm and `value` may be off by together.
  struct Near {
    Pair value;
    V window;
  };
  // The nearest double to a number, and whether libm gives the same.
  struct Rounded {
    V value;
    M is_sure;
  };
  static HWY_INLINE Rounded Round(const Near& near) {
    const auto& [high, low] = near.value;
    return {hn::Add(high, low),
            hn::Eq(hn::Add(high, hn::Sub(low, near.window)),
                   hn::Add(high, hn::Add(low, near.window)))};
  }

  // Sine and cosine of r + low, where |r| < 0.786 and |low| is at most half a
  // unit of r's last place.
  struct NearSineCosine {
    Near sine, cosine;
  };
  static HWY_INLINE NearSineCosine SineCosineNearZero(V r, V low) {
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
    const V r4_low = hn::MulSub(r2, r2, r4);  // Less what r2_low adds.
    const Pair sine = AddProduct(r, r3, -kSixth);
    const Pair near_cosine = AddProduct(Constant(1), r2, -0.5);
    const Pair cosine = AddProduct(near_cosine.high, r4, kTwentyFourth);

    // The polynomials take longest, so they are added last.
    V sine_low = hn::MulAdd(r3_low, Constant(-kSixth), sine.low);
    sine_low = hn::MulAdd(low, cosine.high, sine_low);
    sine_low = hn::MulAdd(
        r3, hn::MulAdd(r2, Polynomial(kSine, r2, r4), Constant(-kSixthLow)),
        sine_low);

    V cosine_low = hn::MulAdd(
        r2_low, hn::MulAdd(r2, Constant(2 * kTwentyFourth), Constant(-0.5)),
        hn::Add(near_cosine.low, cosine.low));
    cosine_low = hn::MulAdd(r4_low, Constant(kTwentyFourth), cosine_low);
    cosine_low = hn::NegMulAdd(low, sine.high, cosine_low);
    cosine_low = hn::MulAdd(
        r4,
        hn::MulAdd(r2, Polynomial(kCosine, r2, r4), Constant(kTwentyFourthLow)),
        cosine_low);

    // Errors before rounding, in units of 2^-53, over 6 million numbers. The
    // sine above is within 0.014 (r / 0.785)^5, the cosine within
    // 0.003 (r / 0.785)^6. libm's sine is within 0.43 r^3 where |r| < 1/8, and
    // within 0.0039 elsewhere. Its cosine is within 0.0006 + 0.0075 r^2.
    constexpr double kUnit = 0x1p-53;
    const V sine_window = hn::IfThenElse(
        hn::Lt(r2, Constant(0x1p-6)), hn::Mul(r3, Constant(0.55 * kUnit)),
        hn::MulAdd(r4, Constant(0.04 * kUnit), Constant(0.0045 * kUnit)));
    const V cosine_window =
        hn::MulAdd(r2, Constant(0.013 * kUnit), Constant(0.0015 * kUnit));
    return {{{sine.high, sine_low}, sine_window},
            {{cosine.high, cosine_low}, cosine_window}};
  }

  // Which elements are not sure.
  class Unsure {
   public:
    // `is_sure` is of the vector that begins at element `i`.
    HWY_INLINE void Add(size_t i, M is_sure) {
      hn::StoreMaskBits(D(), hn::Not(is_sure), bits_ + i / hn::Lanes(D()));
    }
    template <typename Function>
    void Ask(size_t count, const double* x, double* to,
             const Function& function) {
      const size_t lanes = hn::Lanes(D());
      std::memset(bits_ + count / lanes, 0, kVectors);
      for (size_t i = 0; i < count; i += kVectors * lanes) {
        uint64_t bits;
        std::memcpy(&bits, bits_ + i / lanes, kVectors);
        for (; bits != 0; bits &= bits - 1) {
          const size_t bit = std::countr_zero(bits);
          const size_t k = i + bit / 8 * lanes + bit % 8;
          to[k] = function(x[k]);
        }
      }
    }

   private:
    static constexpr size_t kVectors = 8;  // Whose bits are read at once.
    uint8_t bits_[kMaxCount + kVectors];
  };

  static HWY_INLINE Rounded RoundedSquare(V x) {
    const V square = hn::Mul(x, x);
    // libm is within 0.509 + |log(x^2)| 2^-14 units of the last place.
    const M is_fit = hn::And(hn::Gt(square, Constant(0x1p-30)),
                             hn::Lt(square, Constant(0x1p20)));
    const M is_sure = hn::Eq(
        hn::Add(square, hn::Mul(SquareError(x, square), Constant(1.021))),
        square);
    return {square, hn::And(is_fit, is_sure)};
  }

  // An angle as quarter turns and a rest in [-pi / 4, pi / 4].
  using Whole = hn::Vec<hn::RebindToSigned<D>>;
  struct Turned {
    Whole quadrant;  // Its last two bits.
    Pair rest;
    M is_fit;  // `rest` is as near as is wanted.
  };
  static HWY_INLINE Turned Turn(V x) {
    // pi / 2 in parts of 44 and 53 bits (Cody and Waite, 1980). The first
    // times the number of quarter turns is exact, and so is the rest of x.
    constexpr double kParts[] = {0x1.921fb54442cp+0, 0x1.18469898cc517p-44};
    constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
    const V shift = Constant(0x1.8p52);  // Whose last bits are whole numbers.
    const V shifted = hn::MulAdd(x, Constant(kTwoOverPi), shift);
    const V turns = hn::Sub(shifted, shift);
    const V high = hn::NegMulAdd(turns, Constant(kParts[0]), x);
    const Pair rest = AddProduct(high, turns, -kParts[1]);
    return {hn::BitCast(hn::RebindToSigned<D>(), shifted), rest,
            hn::And(hn::Le(hn::Abs(x), Constant(512)),
                    hn::Gt(hn::Abs(rest.high), Constant(0x1p-20)))};
  }

  // `even` or `odd`, by the number of quarter turns.
  static HWY_INLINE Near Choose(const Turned& turned, const Near& even,
                                const Near& odd) {
    const auto one = hn::Set(hn::RebindToSigned<D>(), 1);
    const M is_odd = hn::RebindMask(D(), hn::TestBit(turned.quadrant, one));
    const auto choose = [&](V a, V b)
                            HWY_ATTR { return hn::IfThenElse(is_odd, b, a); };
    return {{choose(even.value.high, odd.value.high),
             choose(even.value.low, odd.value.low)},
            choose(even.window, odd.window)};
  }

  // The sign of sine in a quadrant.
  static HWY_INLINE V SignOf(Whole quadrant) {
    return hn::BitCast(
        D(), hn::ShiftLeft<62>(
                 hn::And(quadrant, hn::Set(hn::RebindToSigned<D>(), 2))));
  }

  // std::cos, and std::sin where it is wanted.
  template <bool kWantsSine>
  static void Compute(const double* x, size_t count, double* sine,
                      double* cosine) {
    if constexpr (!kIsComputed) {
      for (size_t i = 0; i < count; ++i) {
        const double angle = x[i];
        if (kWantsSine) sine[i] = LibmSin(angle);
        cosine[i] = LibmCos(angle);
      }
      return;
    }
    const auto one = hn::Set(hn::RebindToSigned<D>(), 1);
    Unsure unsure_sine, unsure_cosine;
    for (size_t i = 0; i < count; i += hn::Lanes(D())) {
      const Turned turned = Turn(hn::LoadU(D(), x + i));
      const NearSineCosine near =
          SineCosineNearZero(turned.rest.high, turned.rest.low);
      const auto write = [&](const Near& even, const Near& odd, Whole quadrant,
                             double* to, Unsure& unsure) HWY_ATTR {
        const Rounded rounded = Round(Choose(turned, even, odd));
        hn::StoreU(hn::Xor(rounded.value, SignOf(quadrant)), D(), to + i);
        unsure.Add(i, hn::And(turned.is_fit, rounded.is_sure));
      };
      if constexpr (kWantsSine) {
        write(near.sine, near.cosine, turned.quadrant, sine, unsure_sine);
      }
      write(near.cosine, near.sine, hn::Add(turned.quadrant, one), cosine,
            unsure_cosine);
    }
    if constexpr (kWantsSine) unsure_sine.Ask(count, x, sine, LibmSin);
    unsure_cosine.Ask(count, x, cosine, LibmCos);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace rill::envs_internal
HWY_AFTER_NAMESPACE();

#endif  // RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_INL_H_
