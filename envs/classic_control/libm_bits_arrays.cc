// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/libm_bits_arrays.h"

#include <algorithm>
#include <cstddef>
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

// The functions of arrays, with whole vectors as they want them.
void ComputeColumns(absl::Span<const double> x, const LibmBitsOfArray& to) {
  using D = hn::CappedTag<double, 8>;
  using Libm = LibmBits<D>;
  constexpr size_t kMost = Libm::kMaxCount;
  for (size_t i = 0; i < x.size(); i += kMost) {
    const size_t used = std::min(kMost, x.size() - i);
    const size_t group = hn::Lanes(D());
    const size_t count = (used + group - 1) / group * group;
    // Zeros fill the last vector; their results are left out.
    double from[kMost] = {};
    double results[4][kMost];
    std::copy_n(x.data() + i, used, from);
    Libm::SinCos(from, count, results[0], results[1]);
    Libm::Cos(from, count, results[2]);
    Libm::PowTwo(from, count, results[3]);
    std::copy_n(results[0], used, to.sine.data() + i);
    std::copy_n(results[1], used, to.cosine.data() + i);
    std::copy_n(results[2], used, to.only_cosine.data() + i);
    std::copy_n(results[3], used, to.power.data() + i);
  }
}

void ComputeImpl(absl::Span<const double> x, const LibmBitsOfArray& to) {
  ComputeColumns(x, to);
  ForLaneGroups(static_cast<int64_t>(x.size()),
                [&]<class D>(D d, int64_t i) HWY_ATTR {
                  const auto [sine, cosine] =
                      LibmBits<D>::SinCosOfSmall(hn::LoadU(d, x.data() + i));
                  hn::StoreU(sine, d, to.small_sine.data() + i);
                  hn::StoreU(cosine, d, to.small_cosine.data() + i);
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
