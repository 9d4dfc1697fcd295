// SPDX-License-Identifier: Apache-2.0
// Lanes in groups that fill a vector. Include it after hwy/highway.h, as
// Highway's own *-inl.h.
#if defined(RILL_ENVS_CLASSIC_CONTROL_LANE_GROUPS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef RILL_ENVS_CLASSIC_CONTROL_LANE_GROUPS_INL_H_
#undef RILL_ENVS_CLASSIC_CONTROL_LANE_GROUPS_INL_H_
#else
#define RILL_ENVS_CLASSIC_CONTROL_LANE_GROUPS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::envs_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls body(D, lane): D is a tag of doubles, `lane` the first of its group. A
// rest that fills no vector goes lane by lane.
template <typename Body>
HWY_INLINE void ForLaneGroups(int64_t lanes, const Body& body) {
  using Whole = hn::ScalableTag<double>;
  const auto group = static_cast<int64_t>(hn::Lanes(Whole()));
  int64_t lane = 0;
  for (; lane + group <= lanes; lane += group) body(Whole(), lane);
  for (; lane < lanes; ++lane) body(hn::CappedTag<double, 1>(), lane);
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::envs_internal
HWY_AFTER_NAMESPACE();

#endif  // RILL_ENVS_CLASSIC_CONTROL_LANE_GROUPS_INL_H_
