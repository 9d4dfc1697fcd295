// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/cart_pole_physics.h"

#include <cstddef>
#include <numbers>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/envs/cart_pole_physics.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"
#include "rill/envs/classic_control/lane_groups-inl.h"
#include "rill/envs/classic_control/libm_bits-inl.h"

// Every operation below stands where it stands in gymnasium 1.4.0
// (envs/classic_control/cartpole.py): another order or a fused multiply-add
// rounds differently, and within 500 steps that grows to another ending.

HWY_BEFORE_NAMESPACE();
namespace rill::envs_internal {
namespace HWY_NAMESPACE {

constexpr int64_t kSize = kCartPoleStateSize;

// One step of as many lanes as D has elements.
template <class D>
HWY_INLINE void StepGroup(const int64_t* actions, double* state,
                          float* observation, bool* is_terminated) {
  constexpr double kTotalMass = 0.1 + 1.0;  // Pole and cart.
  constexpr double kLength = 0.5;           // Half the pole's.
  constexpr double kPoleMassLength = 0.1 * 0.5;
  constexpr double kMaxAngle = 12 * 2 * std::numbers::pi / 360;
  using Libm = LibmBits<D>;
  using V = hn::Vec<D>;
  const hn::RebindToSigned<D> whole;
  const V mass = hn::Set(D(), kTotalMass);
  const V tau = hn::Set(D(), 0.02);  // Seconds between states.

  V x, velocity, angle, turn;
  hn::LoadInterleaved4(D(), state, x, velocity, angle, turn);
  const auto is_right =
      hn::RebindMask(D(), hn::Eq(hn::LoadU(whole, actions), hn::Set(whole, 1)));
  const V force = hn::IfThenElse(is_right, hn::Set(D(), 10), hn::Set(D(), -10));
  const auto [sine, cosine] = Libm::SinCosOfSmall(angle);
  const V temp =
      hn::Div(hn::Add(force, hn::Mul(hn::Mul(hn::Set(D(), kPoleMassLength),
                                             hn::Mul(turn, turn)),
                                     sine)),
              mass);
  const V inertia = hn::Mul(
      hn::Set(D(), kLength),
      hn::Sub(
          hn::Set(D(), 4.0 / 3.0),
          hn::Div(hn::Mul(hn::Set(D(), 0.1), hn::Mul(cosine, cosine)), mass)));
  const V angle_acceleration =
      hn::Div(hn::Sub(hn::Mul(hn::Set(D(), 9.8), sine), hn::Mul(cosine, temp)),
              inertia);
  const V acceleration =
      hn::Sub(temp, hn::Div(hn::Mul(hn::Mul(hn::Set(D(), kPoleMassLength),
                                            angle_acceleration),
                                    cosine),
                            mass));
  // Explicit Euler: positions move with the velocities before this step.
  x = hn::Add(x, hn::Mul(tau, velocity));
  velocity = hn::Add(velocity, hn::Mul(tau, acceleration));
  angle = hn::Add(angle, hn::Mul(tau, turn));
  turn = hn::Add(turn, hn::Mul(tau, angle_acceleration));
  hn::StoreInterleaved4(x, velocity, angle, turn, D(), state);
  // The rows that were just stored, in the order of memory: element i of the
  // observations is element i of the states, rounded.
  const hn::Rebind<float, D> floats;
  for (size_t i = 0; i < kSize * hn::Lanes(D()); i += hn::Lanes(D())) {
    hn::StoreU(hn::DemoteTo(floats, hn::LoadU(D(), state + i)), floats,
               observation + i);
  }

  const auto is_out = hn::Or(hn::Gt(hn::Abs(x), hn::Set(D(), 2.4)),
                             hn::Gt(hn::Abs(angle), hn::Set(D(), kMaxAngle)));
  // An element of a mask has all bits set; a bool in memory is 0 or 1.
  const auto out = hn::VecFromMask(whole, hn::RebindMask(whole, is_out));
  const hn::Rebind<uint8_t, D> bytes;
  hn::StoreU(hn::And(hn::TruncateTo(
                         bytes, hn::BitCast(hn::RebindToUnsigned<D>(), out)),
                     hn::Set(bytes, 1)),
             bytes, reinterpret_cast<uint8_t*>(is_terminated));
}

void StepAll(const int64_t* actions, int64_t lanes, double* state,
             float* observation, bool* is_terminated) {
  ForLaneGroups(lanes, [&]<class D>(D, int64_t lane) HWY_ATTR {
    StepGroup<D>(actions + lane, state + kSize * lane,
                 observation + kSize * lane, is_terminated + lane);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::envs_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::envs_internal {

HWY_EXPORT(StepAll);

void StepCartPoles(absl::Span<const int64_t> actions, double* state,
                   float* observation, bool* is_terminated) {
  HWY_DYNAMIC_DISPATCH(StepAll)
  (actions.data(), static_cast<int64_t>(actions.size()), state, observation,
   is_terminated);
}

void InitCartPole(const Rng& rng, uint64_t episode, int64_t lane,
                  double* state) {
  constexpr double kLow = -0.05;
  constexpr double kHigh = 0.05;
  for (int64_t i = 0; i < kCartPoleStateSize; ++i) {
    // All lanes have one seed. Numbers of draws keep their streams apart.
    const auto draw = static_cast<uint32_t>(lane * kCartPoleStateSize + i);
    state[i] = kLow + (kHigh - kLow) * rng.UniformDouble(episode, draw);
  }
}

}  // namespace rill::envs_internal
#endif  // HWY_ONCE
