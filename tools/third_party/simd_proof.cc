// SPDX-License-Identifier: Apache-2.0

#include "rill/tools/third_party/simd_proof.h"

#include <cstdint>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/tools/third_party/simd_proof.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

float Sum(const float* x, int64_t size) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    sums = hn::Add(sums, hn::LoadU(d, x + i));
  }
  float sum = hn::ReduceSum(d, sums);
  for (; i < size; ++i) sum += x[i];
  return sum;
}

const char* Target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace rill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill {

HWY_EXPORT(Sum);
HWY_EXPORT(Target);

float SimdSum(const float* x, int64_t size) {
  return HWY_DYNAMIC_DISPATCH(Sum)(x, size);
}

const char* SimdTarget() { return HWY_DYNAMIC_DISPATCH(Target)(); }

}  // namespace rill
#endif  // HWY_ONCE
