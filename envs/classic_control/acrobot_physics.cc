// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/acrobot_physics.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numbers>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/envs/classic_control/acrobot_physics.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"
#include "rill/envs/classic_control/lane_groups-inl.h"
#include "rill/envs/classic_control/libm_bits-inl.h"

// Operations stand where they stand in gymnasium 1.4.0
// (envs/classic_control/acrobot.py), less those with constants of 1.

HWY_BEFORE_NAMESPACE();
namespace rill::envs_internal {
namespace HWY_NAMESPACE {

// The physics of as many lanes as D has elements.
template <class D>
class Acrobots {
 public:
  using V = hn::Vec<D>;
  using Libm = LibmBits<D>;
  // Two angles and their velocities, or what these change by in a second.
  using State = std::array<V, 4>;

  // The state after one step; `torque` is at the joint between the links.
  static HWY_INLINE State Next(const State& s, V torque) {
    constexpr double kTau = 0.2;  // Seconds between states.
    const State k1 = Derivative(s, torque);
    const State k2 = Derivative(Along(s, kTau / 2, k1), torque);
    const State k3 = Derivative(Along(s, kTau / 2, k2), torque);
    const State k4 = Derivative(Along(s, kTau, k3), torque);
    State slope;
    for (size_t i = 0; i < 4; ++i) {
      slope[i] = hn::Add(hn::Add(hn::Add(k1[i], hn::Mul(Set(2), k2[i])),
                                 hn::Mul(Set(2), k3[i])),
                         k4[i]);
    }
    const State next = Along(s, kTau / 6, slope);
    return State{Wrap(next[0]), Wrap(next[1]),
                 Clamp(next[2], kAcrobotMaxVelocity1),
                 Clamp(next[3], kAcrobotMaxVelocity2)};
  }

 private:
  static constexpr double kPi = std::numbers::pi;

  static HWY_INLINE V Set(double value) { return hn::Set(D(), value); }

  static HWY_INLINE State Derivative(const State& s, V torque) {
    constexpr double kCenter = 0.5;  // Of mass, along a link of length 1.
    constexpr double kGravity = 9.8;
    const auto [sin2, cos2] = Libm::SinCos(s[1]);
    const V d1 = hn::Add(
        hn::Add(hn::Add(Set(0.25), hn::Add(Set(1.25), cos2)), Set(1)), Set(1));
    const V d2 =
        hn::Add(hn::Add(Set(0.25), hn::Mul(Set(kCenter), cos2)), Set(1));
    const V phi2 =
        hn::Mul(Set(kCenter * kGravity),
                Libm::Cos(hn::Sub(hn::Add(s[0], s[1]), Set(kPi / 2))));
    const V turning =
        hn::Sub(hn::Mul(hn::Mul(Set(-kCenter), Libm::PowTwo(s[3])), sin2),
                hn::Mul(hn::Mul(s[3], s[2]), sin2));
    const V falling =
        hn::Mul(Set(1.5 * kGravity), Libm::Cos(hn::Sub(s[0], Set(kPi / 2))));
    const V phi1 = hn::Add(hn::Add(turning, falling), phi2);
    const V pull = hn::Add(torque, hn::Mul(hn::Div(d2, d1), phi1));
    const V swing = hn::Mul(hn::Mul(Set(kCenter), Libm::PowTwo(s[2])), sin2);
    const V acceleration2 =
        hn::Div(hn::Sub(hn::Sub(pull, swing), phi2),
                hn::Sub(Set(0.25 + 1.0), hn::Div(Libm::PowTwo(d2), d1)));
    const V acceleration1 =
        hn::Div(hn::Neg(hn::Add(hn::Mul(d2, acceleration2), phi1)), d1);
    return State{s[2], s[3], acceleration1, acceleration2};
  }

  static HWY_INLINE State Along(const State& s, double time,
                                const State& slope) {
    State to;
    for (size_t i = 0; i < 4; ++i) {
      to[i] = hn::Add(s[i], hn::Mul(Set(time), slope[i]));
    }
    return to;
  }

  static HWY_INLINE V Wrap(V angle) {
    for (auto over = hn::Gt(angle, Set(kPi)); !hn::AllFalse(D(), over);
         over = hn::Gt(angle, Set(kPi))) {
      angle = hn::IfThenElse(over, hn::Sub(angle, Set(2 * kPi)), angle);
    }
    for (auto under = hn::Lt(angle, Set(-kPi)); !hn::AllFalse(D(), under);
         under = hn::Lt(angle, Set(-kPi))) {
      angle = hn::IfThenElse(under, hn::Add(angle, Set(2 * kPi)), angle);
    }
    return angle;
  }

  static HWY_INLINE V Clamp(V value, double limit) {
    return hn::Min(hn::Max(value, Set(-limit)), Set(limit));
  }
};

template <class D>
HWY_INLINE void StepGroup(const ClassicLanes& lanes, int64_t lane) {
  using Libm = LibmBits<D>;
  using State = typename Acrobots<D>::State;
  constexpr size_t kGroup = HWY_MAX_LANES_D(D);
  constexpr size_t kObserved = 6;
  State s;
  double* const state = lanes.state + 4 * lane;
  hn::LoadInterleaved4(D(), state, s[0], s[1], s[2], s[3]);
  const hn::RebindToSigned<D> whole;
  const auto torque = hn::ConvertTo(
      D(), hn::Sub(hn::LoadU(whole, lanes.choice + lane), hn::Set(whole, 1)));
  s = Acrobots<D>::Next(s, torque);
  hn::StoreInterleaved4(s[0], s[1], s[2], s[3], D(), state);

  const auto [sin1, cos1] = Libm::SinCos(s[0]);
  const auto [sin2, cos2] = Libm::SinCos(s[1]);
  const auto height = hn::Sub(hn::Neg(cos1), Libm::Cos(hn::Add(s[1], s[0])));
  HWY_ALIGN double heights[kGroup];
  hn::Store(height, D(), heights);
  const hn::Rebind<float, D> floats;
  HWY_ALIGN float columns[kObserved][kGroup];
  const std::array observed = {cos1, sin1, cos2, sin2, s[2], s[3]};
  for (size_t i = 0; i < kObserved; ++i) {
    hn::StoreU(hn::DemoteTo(floats, observed[i]), floats, columns[i]);
  }
  for (size_t k = 0; k < hn::Lanes(D()); ++k) {
    float* const row = lanes.observation + kObserved * (lane + k);
    for (size_t i = 0; i < kObserved; ++i) row[i] = columns[i][k];
    const bool is_up = heights[k] > 1.0;
    lanes.reward[lane + k] = is_up ? 0 : -1;
    lanes.terminated[lane + k] = is_up;
  }
}

void StepAll(const ClassicLanes& lanes) {
  ForLaneGroups(lanes.lanes, [&]<class D>(D, int64_t lane)
                                 HWY_ATTR { StepGroup<D>(lanes, lane); });
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::envs_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::envs_internal {

HWY_EXPORT(StepAll);

void StepAcrobots(const ClassicLanes& lanes) {
  HWY_DYNAMIC_DISPATCH(StepAll)(lanes);
}

}  // namespace rill::envs_internal
#endif  // HWY_ONCE
