// SPDX-License-Identifier: Apache-2.0
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

// A fused multiply-add gives the same: the product is exact.
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

template <typename Step>
void MapPart(const float* in, VF64 scale, VF64 loc, size_t n, float* out) {
  const auto x = hn::PromoteTo(F64(), hn::LoadN(F32Of64(), in, n));
  hn::StoreN(hn::DemoteTo(F32Of64(), Step::Map(x, scale, loc)), F32Of64(), out,
             n);
}

template <typename Step>
void MapWhole(const float* in, VF64 scale, VF64 loc, float* out) {
  const auto x = hn::PromoteTo(F64(), hn::LoadU(F32Of64(), in));
  hn::StoreU(hn::DemoteTo(F32Of64(), Step::Map(x, scale, loc)), F32Of64(), out);
}

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
  for (; count > 0; count -= numbers.period) {
    int64_t i = 0;
    for (; i + lanes <= numbers.period; i += lanes) {
      MapWhole<Step>(in + i, hn::LoadU(F64(), numbers.scale + i),
                     hn::LoadU(F64(), numbers.loc + i), out + i);
    }
    const auto rest = static_cast<size_t>(numbers.period - i);
    if (rest > 0) {
      // What lies behind the numbers divides nothing by 0.
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
// exact, and a small rest: all 256 sums round to the quotients.
constexpr float kHigh = 0x1.01p-8f;
constexpr float kLow = static_cast<float>(1.0 / 255 - 0x1.01p-8);

void UnitIntervalAll(const uint8_t* in, int64_t count, float* out) {
  using F32 = hn::ScalableTag<float>;
  const hn::Rebind<int32_t, F32> ints;
  const hn::Rebind<uint8_t, F32> bytes;
  const auto high = hn::Set(F32(), kHigh);
  const auto low = hn::Set(F32(), kLow);
  const auto lanes = static_cast<int64_t>(hn::Lanes(F32()));
  const auto map = [&](auto value) HWY_ATTR {
    const auto x = hn::ConvertTo(F32(), hn::PromoteTo(ints, value));
    return hn::Add(hn::Mul(x, high), hn::Mul(x, low));
  };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(map(hn::LoadU(bytes, in + i)), F32(), out + i);
  }
  if (i == count) return;
  const auto rest = static_cast<size_t>(count - i);
  hn::StoreN(map(hn::LoadN(bytes, in + i, rest)), F32(), out + i, rest);
}

void StreamCopyAll(const std::byte* from, int64_t bytes, std::byte* to) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to));
  const int64_t head = std::min(bytes, (lanes - address % lanes) % lanes);
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

void EndStreams() { hwy::FlushStream(); }

void StreamCopy(const std::byte* from, int64_t bytes, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(StreamCopyAll)(from, bytes, to);
}

}  // namespace rill::transforms_internal
#endif  // HWY_ONCE
