// SPDX-License-Identifier: Apache-2.0
// Each kernel is compiled for several instruction sets, and the widest that the
// processor has is called. All give the same bits: elements are independent,
// and no result depends on the number of lanes.
#include "rill/transforms/rows/row_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/transforms/rows/row_kernels.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::transforms_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using F32Of64 = hn::Rebind<float, F64>;
using VF64 = hn::Vec<F64>;

struct ScaleThenShiftStep {
#if HWY_NATIVE_FMA
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static V Map(V x, V scale, V loc) { return hn::MulAdd(x, scale, loc); }
#else
  using D = F32Of64;
  using V = hn::Vec<D>;
  // In double the product is exact and the sum is not. Rounded to odd, it gives
  // the float32 that the exact sum has (Boldo and Melquiond, 2008).
  static V Map(V x, V scale, V loc) {
    const F64 d;
    const hn::Rebind<int64_t, F64> ints;
    const VF64 a = hn::Mul(hn::PromoteTo(d, x), hn::PromoteTo(d, scale));
    const VF64 b = hn::PromoteTo(d, loc);
    const VF64 sum = hn::Add(a, b);
    const VF64 of_b = hn::Sub(sum, a);
    const VF64 error =
        hn::Add(hn::Sub(a, hn::Sub(sum, of_b)), hn::Sub(b, of_b));
    // An even sum moves to its neighbour on the side of the error: away from 0
    // where both have one sign. NaN, the error of an infinite sum, moves none.
    const VF64 zero = hn::Zero(d);
    const auto is_inexact = hn::Or(hn::Gt(error, zero), hn::Lt(error, zero));
    const auto bits = hn::BitCast(ints, sum);
    const auto one = hn::Set(ints, 1);
    const auto is_even = hn::Eq(hn::And(bits, one), hn::Zero(ints));
    const auto step = hn::Or(
        hn::BroadcastSignBit(hn::Xor(bits, hn::BitCast(ints, error))), one);
    const auto moves = hn::And(hn::RebindMask(ints, is_inexact), is_even);
    const auto odd = hn::Add(bits, hn::IfThenElseZero(moves, step));
    return hn::DemoteTo(D(), hn::BitCast(d, odd));
  }
#endif
};

struct ShiftThenDivideStep {
  using D = F32Of64;
  using V = hn::Vec<D>;
  static V Map(V x, V scale, V loc) {
    const F64 d;
    const VF64 shifted = hn::Sub(hn::PromoteTo(d, x), hn::PromoteTo(d, loc));
    return hn::DemoteTo(D(), hn::Div(shifted, hn::PromoteTo(d, scale)));
  }
};

// The first `n` elements of a vector. LoadN and StoreN touch no byte behind
// them, which may be unmapped or another thread's.
template <typename Step, typename D = typename Step::D,
          typename V = typename Step::V>
void MapPart(const float* in, V scale, V loc, size_t n, float* out) {
  hn::StoreN(Step::Map(hn::LoadN(D(), in, n), scale, loc), D(), out, n);
}

// A whole vector, at any alignment.
template <typename Step, typename D = typename Step::D,
          typename V = typename Step::V>
void MapWhole(const float* in, V scale, V loc, float* out) {
  hn::StoreU(Step::Map(hn::LoadU(D(), in), scale, loc), D(), out);
}

// The loop for one number is separate: its numbers stay in registers.
template <typename Step>
void MapAll(const float* in, const RowNumbers& numbers, int64_t count,
            float* out) {
  const typename Step::D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (numbers.period == 1) {
    const auto scale = hn::Set(d, numbers.scale[0]);
    const auto loc = hn::Set(d, numbers.loc[0]);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      MapWhole<Step>(in + i, scale, loc, out + i);
    }
    if (i < count) {
      MapPart<Step>(in + i, scale, loc, static_cast<size_t>(count - i),
                    out + i);
    }
    return;
  }
  // Rows are mapped one by one, so that element i of each meets numbers i. The
  // vectors of a row begin at its first element.
  for (; count > 0; count -= numbers.period) {
    int64_t i = 0;
    for (; i + lanes <= numbers.period; i += lanes) {
      MapWhole<Step>(in + i, hn::LoadU(d, numbers.scale + i),
                     hn::LoadU(d, numbers.loc + i), out + i);
    }
    const auto rest = static_cast<size_t>(numbers.period - i);
    if (rest > 0) {
      // Lanes behind the row's end divide by 1. They are not stored, but a
      // division by 0 would set the processor's exception flag.
      MapPart<Step>(in + i,
                    hn::LoadNOr(hn::Set(d, 1), d, numbers.scale + i, rest),
                    hn::LoadN(d, numbers.loc + i, rest), rest, out + i);
    }
    in += numbers.period;
    out += numbers.period;
  }
}

void ScaleThenShiftAll(const float* in, const RowNumbers& numbers,
                       int64_t count, float* out) {
  MapAll<ScaleThenShiftStep>(in, numbers, count, out);
}

void ShiftThenDivideAll(const float* in, const RowNumbers& numbers,
                        int64_t count, float* out) {
  MapAll<ShiftThenDivideStep>(in, numbers, count, out);
}

// 1 / 255 as the sum of a number of 16 bits, whose products with bytes are
// exact, and a small rest. One rounding of the rest and one of the sum give the
// rounded quotient x / 255 for all 256 bytes. Two multiplications are faster
// than a division.
constexpr float kHigh = 0x1.01p-8f;
constexpr float kLow = static_cast<float>(1.0 / 255 - 0x1.01p-8);

// How many of `count` elements of `T` come before the first vector at `to` that
// is aligned, as stores past the caches want it.
template <class D, typename T = hn::TFromD<D>>
int64_t HeadOf(D d, const T* to, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(T));
  return std::min(count, (lanes - at % lanes) % lanes);
}

// out = in / 255. With kPastCaches the body uses streaming stores, which want
// aligned addresses; head and tail are stored as usual.
template <bool kPastCaches>
void UnitIntervals(const uint8_t* in, int64_t count, float* out) {
  const hn::ScalableTag<float> floats;
  const hn::Rebind<int32_t, decltype(floats)> ints;
  const hn::Rebind<uint8_t, decltype(floats)> bytes;
  const auto high = hn::Set(floats, kHigh);
  const auto low = hn::Set(floats, kLow);
  const auto lanes = static_cast<int64_t>(hn::Lanes(floats));
  const auto map = [&](auto value) HWY_ATTR {
    const auto x = hn::ConvertTo(floats, hn::PromoteTo(ints, value));
    return hn::Add(hn::Mul(x, high), hn::Mul(x, low));
  };
  const auto map_part = [&](int64_t from, int64_t n) HWY_ATTR {
    if (n == 0) return;
    const auto part = static_cast<size_t>(n);
    hn::StoreN(map(hn::LoadN(bytes, in + from, part)), floats, out + from,
               part);
  };
  int64_t i = 0;
  if constexpr (kPastCaches) {
    i = HeadOf(floats, out, count);
    map_part(0, i);
  }
  for (; i + lanes <= count; i += lanes) {
    const auto values = map(hn::LoadU(bytes, in + i));
    if constexpr (kPastCaches) {
      hn::Stream(values, floats, out + i);
    } else {
      hn::StoreU(values, floats, out + i);
    }
  }
  map_part(i, count - i);
}

// Functions without template parameters, which HWY_EXPORT takes.
void UnitIntervalAll(const uint8_t* in, int64_t count, float* out) {
  UnitIntervals<false>(in, count, out);
}

void StreamUnitIntervalAll(const uint8_t* in, int64_t count, float* out) {
  UnitIntervals<true>(in, count, out);
}

// The tail and the head go through the caches: streaming stores write whole
// vectors.
void StreamCopyAll(const std::byte* from, int64_t bytes, std::byte* to) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t head = HeadOf(d, reinterpret_cast<const uint8_t*>(to), bytes);
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + lanes <= bytes; i += lanes) {
    hn::Stream(hn::LoadU(d, reinterpret_cast<const uint8_t*>(from + i)), d,
               reinterpret_cast<uint8_t*>(to + i));
  }
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::transforms_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::transforms_internal {

HWY_EXPORT(ScaleThenShiftAll);
HWY_EXPORT(ShiftThenDivideAll);
HWY_EXPORT(UnitIntervalAll);
HWY_EXPORT(StreamUnitIntervalAll);
HWY_EXPORT(StreamCopyAll);

void ScaleThenShift(const float* in, const RowNumbers& numbers, int64_t count,
                    float* out) {
  HWY_DYNAMIC_DISPATCH(ScaleThenShiftAll)(in, numbers, count, out);
}

void ShiftThenDivide(const float* in, const RowNumbers& numbers, int64_t count,
                     float* out) {
  HWY_DYNAMIC_DISPATCH(ShiftThenDivideAll)(in, numbers, count, out);
}

void UnitInterval(const uint8_t* in, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(UnitIntervalAll)(in, count, out);
}

void StreamUnitInterval(const uint8_t* in, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(StreamUnitIntervalAll)(in, count, out);
}

// A fence. Streaming stores are weakly ordered on x86: without it another
// thread could see a flag that was set after them and still read old bytes.
void EndStreams() { hwy::FlushStream(); }

void StreamCopy(const std::byte* from, int64_t bytes, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(StreamCopyAll)(from, bytes, to);
}

}  // namespace rill::transforms_internal
#endif  // HWY_ONCE
