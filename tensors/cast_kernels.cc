// SPDX-License-Identifier: Apache-2.0
// A kernel casts one vector of elements (Step); Run does the loop and the tail
// for all of them. Each cast has the same bits on every instruction set and as
// the scalar code: the 16-bit formats are rounded by integer arithmetic here.
#include "rill/tensors/cast_kernels.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rill/tensors/dtype.h"

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/tensors/cast_kernels.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::tensor_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Everything but float64 goes through vectors of 32 bits an element.
using F32 = hn::ScalableTag<float>;
using U32 = hn::Rebind<uint32_t, F32>;
using I32 = hn::Rebind<int32_t, F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using VF32 = hn::Vec<F32>;
using VU32 = hn::Vec<U32>;

VU32 Bits(uint32_t value) { return hn::Set(U32(), value); }

// Each cast has the lanes of a step and Step, which casts so many.
template <typename Integer>
struct IntegerToFloat {
  using From = Integer;
  using To = float;
  static size_t Lanes() { return hn::Lanes(F32()); }
  static void Step(const From* in, To* out) {
    // int32 to float rounds to nearest, ties to even; smaller integers are
    // exact.
    if constexpr (sizeof(From) == sizeof(int32_t)) {
      hn::StoreU(hn::ConvertTo(F32(), hn::LoadU(I32(), in)), F32(), out);
    } else {
      const auto narrow = hn::LoadU(hn::Rebind<From, F32>(), in);
      hn::StoreU(hn::ConvertTo(F32(), hn::PromoteTo(I32(), narrow)), F32(),
                 out);
    }
  }
};

// A bool is read as a byte that may be neither 0 nor 1.
struct BoolToFloat {
  using From = uint8_t;
  using To = float;
  static size_t Lanes() { return hn::Lanes(F32()); }
  static void Step(const From* in, To* out) {
    const hn::Rebind<uint8_t, F32> bytes;
    const auto flags = hn::Min(hn::LoadU(bytes, in), hn::Set(bytes, 1));
    hn::StoreU(hn::ConvertTo(F32(), hn::PromoteTo(I32(), flags)), F32(), out);
  }
};

struct DoubleToFloat {
  using From = double;
  using To = float;
  static size_t Lanes() { return hn::Lanes(hn::ScalableTag<double>()); }
  static void Step(const From* in, To* out) {
    const hn::ScalableTag<double> wide;
    const hn::Rebind<float, decltype(wide)> narrow;
    hn::StoreU(hn::DemoteTo(narrow, hn::LoadU(wide, in)), narrow, out);
  }
};

struct FloatToDouble {
  using From = float;
  using To = double;
  static size_t Lanes() { return hn::Lanes(hn::ScalableTag<double>()); }
  static void Step(const From* in, To* out) {
    const hn::ScalableTag<double> wide;
    const hn::Rebind<float, decltype(wide)> narrow;
    hn::StoreU(hn::PromoteTo(wide, hn::LoadU(narrow, in)), wide, out);
  }
};

// The 16-bit formats are taken apart by integer arithmetic. Instruction sets
// differ in what they do with NaN, and not all of them have such casts.
constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kFloatNaN = 0x7FC00000;

// bfloat16 is the upper half of a float: a shift is the whole cast. A NaN
// becomes the quiet one with its sign.
struct BFloat16ToFloat {
  using From = uint16_t;
  using To = float;
  static size_t Lanes() { return hn::Lanes(F32()); }
  static void Step(const From* in, To* out) {
    const VU32 bits =
        hn::ShiftLeft<16>(hn::PromoteTo(U32(), hn::LoadU(U16(), in)));
    const VU32 nan = hn::Or(hn::And(bits, Bits(kSign)), Bits(kFloatNaN));
    const auto is_nan =
        hn::RebindMask(U32(), hn::IsNaN(hn::BitCast(F32(), bits)));
    hn::StoreU(hn::BitCast(F32(), hn::IfThenElse(is_nan, nan, bits)), F32(),
               out);
  }
};

struct FloatToBFloat16 {
  using From = float;
  using To = uint16_t;
  static size_t Lanes() { return hn::Lanes(F32()); }
  static void Step(const From* in, To* out) {
    const VF32 value = hn::LoadU(F32(), in);
    const VU32 bits = hn::BitCast(U32(), value);
    const VU32 high = hn::ShiftRight<16>(bits);
    // To nearest, ties to even: half a unit less one is added, and one more if
    // the last bit that stays is odd. A carry into the exponent is right.
    const VU32 rounded = hn::ShiftRight<16>(
        hn::Add(bits, hn::Add(Bits(0x7FFF), hn::And(high, Bits(1)))));
    // Rounding could carry a NaN into an infinity, so NaN has a value of its
    // own.
    const VU32 nan = hn::Or(hn::And(high, Bits(0x8000)), Bits(0x7FC0));
    const auto is_nan = hn::RebindMask(U32(), hn::IsNaN(value));
    hn::StoreU(hn::TruncateTo(U16(), hn::IfThenElse(is_nan, nan, rounded)),
               U16(), out);
  }
};

struct Float16ToFloat {
  using From = uint16_t;
  using To = float;
  static size_t Lanes() { return hn::Lanes(F32()); }
  static void Step(const From* in, To* out) {
    const VU32 half = hn::PromoteTo(U32(), hn::LoadU(U16(), in));
    const VU32 sign = hn::ShiftLeft<16>(hn::And(half, Bits(0x8000)));
    const VU32 magnitude = hn::And(half, Bits(0x7FFF));
    // Mantissa and exponent in a float's places, the exponent rebiased.
    const VU32 normal =
        hn::Add(hn::ShiftLeft<13>(magnitude), Bits((127 - 15) << 23));
    // Below 2^-14 the half has no implicit bit. As a float of exponent -14 it
    // gets one by `least`, which the subtraction takes off. That is exact and
    // normalises.
    const VU32 least = Bits((127 - 14) << 23);
    const VU32 small = hn::BitCast(
        U32(),
        hn::Sub(hn::BitCast(F32(), hn::Or(hn::ShiftLeft<13>(magnitude), least)),
                hn::BitCast(F32(), least)));
    const VU32 infinity = Bits(0x7F800000);
    VU32 bits = hn::IfThenElse(hn::Lt(magnitude, Bits(0x0400)), small, normal);
    bits = hn::IfThenElse(hn::Eq(magnitude, Bits(0x7C00)), infinity, bits);
    bits =
        hn::IfThenElse(hn::Gt(magnitude, Bits(0x7C00)), Bits(kFloatNaN), bits);
    hn::StoreU(hn::BitCast(F32(), hn::Or(bits, sign)), F32(), out);
  }
};

struct FloatToFloat16 {
  using From = float;
  using To = uint16_t;
  static size_t Lanes() { return hn::Lanes(F32()); }
  static void Step(const From* in, To* out) {
    const VU32 bits = hn::BitCast(U32(), hn::LoadU(F32(), in));
    const VU32 sign = hn::ShiftRight<16>(hn::And(bits, Bits(kSign)));
    const VU32 magnitude = hn::AndNot(Bits(kSign), bits);
    // To nearest, ties to even, as above: 13 bits are dropped. A number that is
    // too large carries into the exponent of infinity.
    const VU32 odd = hn::And(hn::ShiftRight<13>(magnitude), Bits(1));
    const VU32 rebiased =
        hn::Sub(hn::Add(magnitude, Bits(0xFFF)), Bits((127 - 15) << 23));
    const VU32 normal = hn::ShiftRight<13>(hn::Add(rebiased, odd));
    // Below 2^-14, where a half has units of 2^-24: so has a float next to 0.5.
    // Adding 0.5 makes the adder round to these units, and taking its bits off
    // leaves the half's. It relies on the default rounding mode.
    const VU32 half = Bits(0x3F000000);
    const VU32 small =
        hn::Sub(hn::BitCast(U32(), hn::Add(hn::BitCast(F32(), magnitude),
                                           hn::BitCast(F32(), half))),
                half);
    VU32 result = hn::IfThenElse(hn::Lt(magnitude, Bits((127 - 14) << 23)),
                                 small, normal);
    // From 65536 on the result is infinity. NaN comes last: its pattern is
    // above that of infinity.
    result = hn::IfThenElse(hn::Lt(magnitude, Bits((127 + 16) << 23)), result,
                            Bits(0x7C00));
    result = hn::IfThenElse(hn::Gt(magnitude, Bits(0x7F800000)), Bits(0x7E00),
                            result);
    hn::StoreU(hn::TruncateTo(U16(), hn::Or(result, sign)), U16(), out);
  }
};

// All elements: whole vectors, then the tail by way of two arrays of a vector's
// size. So no kernel needs a form for parts, and no byte behind the ends is
// touched.
template <typename Kernel>
void Run(const std::byte* in_bytes, std::byte* out_bytes, int64_t count) {
  using From = typename Kernel::From;
  using To = typename Kernel::To;
  const auto* in = reinterpret_cast<const From*>(in_bytes);
  auto* out = reinterpret_cast<To*>(out_bytes);
  const auto lanes = static_cast<int64_t>(Kernel::Lanes());
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) Kernel::Step(in + i, out + i);
  if (i == count) return;
  // Zeros behind the tail, so that no byte is read that was never set.
  From last_in[HWY_MAX_BYTES / 4] = {};
  To last_out[HWY_MAX_BYTES / 4];
  std::memcpy(last_in, in + i, static_cast<size_t>(count - i) * sizeof(From));
  Kernel::Step(last_in, last_out);
  std::memcpy(out + i, last_out, static_cast<size_t>(count - i) * sizeof(To));
}

// False where this pair of dtypes has no kernel. The choice is made once a
// call, so the loop has no branch.
bool CastAny(DType from, DType to, const std::byte* in, std::byte* out,
             int64_t count) {
  void (*run)(const std::byte*, std::byte*, int64_t) = nullptr;
  if (to == DType::kFloat32) {
    if (from == DType::kBool) run = Run<BoolToFloat>;
    if (from == DType::kUInt8) run = Run<IntegerToFloat<uint8_t>>;
    if (from == DType::kInt8) run = Run<IntegerToFloat<int8_t>>;
    if (from == DType::kInt16) run = Run<IntegerToFloat<int16_t>>;
    if (from == DType::kInt32) run = Run<IntegerToFloat<int32_t>>;
    if (from == DType::kFloat16) run = Run<Float16ToFloat>;
    if (from == DType::kBFloat16) run = Run<BFloat16ToFloat>;
    if (from == DType::kFloat64) run = Run<DoubleToFloat>;
  } else if (from == DType::kFloat32) {
    if (to == DType::kFloat16) run = Run<FloatToFloat16>;
    if (to == DType::kBFloat16) run = Run<FloatToBFloat16>;
    if (to == DType::kFloat64) run = Run<FloatToDouble>;
  }
  if (run == nullptr) return false;
  run(in, out, count);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::tensor_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::tensor_internal {

HWY_EXPORT(CastAny);

bool CastWithVectors(DType from, DType to, const std::byte* in, std::byte* out,
                     int64_t count) {
  return HWY_DYNAMIC_DISPATCH(CastAny)(from, to, in, out, count);
}

}  // namespace rill::tensor_internal
#endif  // HWY_ONCE
