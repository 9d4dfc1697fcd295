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

// A fused multiply-add gives the same: both factors are float32 values, so that
// their product is exact in double.
struct ScaleThenShiftStep {
  static VF64 Map(VF64 x, VF64 scale, VF64 loc) {
    return hn::Add(hn::Mul(x, scale), loc);
  }
};

struct ShiftThenDivideStep {
  static VF64 Map(VF64 x, VF64 scale, VF64 loc) {
    return hn::Div(hn::Sub(x, loc), scale);
  }
};

// The first `n` elements of a vector. LoadN and StoreN touch no byte behind
// them, which may be unmapped or another thread's.
template <typename Step>
void MapPart(const float* in, VF64 scale, VF64 loc, size_t n, float* out) {
  const auto x = hn::PromoteTo(F64(), hn::LoadN(F32Of64(), in, n));
  hn::StoreN(hn::DemoteTo(F32Of64(), Step::Map(x, scale, loc)), F32Of64(), out,
             n);
}

// A whole vector, at any alignment.
template <typename Step>
void MapWhole(const float* in, VF64 scale, VF64 loc, float* out) {
  const auto x = hn::PromoteTo(F64(), hn::LoadU(F32Of64(), in));
  hn::StoreU(hn::DemoteTo(F32Of64(), Step::Map(x, scale, loc)), F32Of64(), out);
}

// The loop for one number is separate: its numbers stay in registers.
template <typename Step>
void MapAll(const float* in, const RowNumbers& numbers, int64_t count,
            float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F64()));
  if (numbers.period == 1) {
    const VF64 scale = hn::Set(F64(), numbers.scale[0]);
    const VF64 loc = hn::Set(F64(), numbers.loc[0]);
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
      MapWhole<Step>(in + i, hn::LoadU(F64(), numbers.scale + i),
                     hn::LoadU(F64(), numbers.loc + i), out + i);
    }
    const auto rest = static_cast<size_t>(numbers.period - i);
    if (rest > 0) {
      // Lanes behind the row's end divide by 1. They are not stored, but a
      // division by 0 would set the processor's exception flag.
      MapPart<Step>(
          in + i,
          hn::LoadNOr(hn::Set(F64(), 1), F64(), numbers.scale + i, rest),
          hn::LoadN(F64(), numbers.loc + i, rest), rest, out + i);
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
