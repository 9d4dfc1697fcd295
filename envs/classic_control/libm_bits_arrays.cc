// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/libm_bits_arrays.h"

#include <cstdint>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/envs/classic_control/libm_bits_arrays.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"
#include "rill/envs/classic_control/lane_groups-inl.h"
#include "rill/envs/classic_control/libm_bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rill::envs_internal {
namespace HWY_NAMESPACE {

void ComputeImpl(absl::Span<const double> x, const LibmBitsOfArray& to) {
  ForLaneGroups(
      static_cast<int64_t>(x.size()), [&]<class D>(D d, int64_t i) HWY_ATTR {
        using Libm = LibmBits<D>;
        const auto v = hn::LoadU(d, x.data() + i);
        const auto [sine, cosine] = Libm::SinCos(v);
        const auto [small_sine, small_cosine] = Libm::SinCosOfSmall(v);
        hn::StoreU(sine, d, to.sine.data() + i);
        hn::StoreU(cosine, d, to.cosine.data() + i);
        hn::StoreU(small_sine, d, to.small_sine.data() + i);
        hn::StoreU(small_cosine, d, to.small_cosine.data() + i);
        hn::StoreU(Libm::Sin(v), d, to.only_sine.data() + i);
        hn::StoreU(Libm::Cos(v), d, to.only_cosine.data() + i);
        hn::StoreU(Libm::PowTwo(v), d, to.power.data() + i);
      });
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::envs_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::envs_internal {

HWY_EXPORT(ComputeImpl);

void ComputeLibmBits(absl::Span<const double> x, const LibmBitsOfArray& to) {
  HWY_DYNAMIC_DISPATCH(ComputeImpl)(x, to);
}

}  // namespace rill::envs_internal
#endif  // HWY_ONCE
