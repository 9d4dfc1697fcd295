// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/acrobot_physics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numbers>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/envs/classic_control/acrobot_physics.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"
#include "rill/envs/classic_control/libm_bits-inl.h"

// Operations stand where they stand in gymnasium 1.4.0
// (envs/classic_control/acrobot.py), less those with constants of 1.

HWY_BEFORE_NAMESPACE();
namespace rill::envs_internal {
namespace HWY_NAMESPACE {

// Some lanes. A quantity of theirs is a column of `count` doubles, and columns
// follow one another. A loop over vectors does not wait for each one's results,
// and libm is asked between the loops.
template <class D>
class Acrobots {
 public:
  // The columns of 64 lanes take 15 KiB: they fit the first cache and the
  // stack.
  static constexpr size_t kMaxCount = 64;

  // `count` is at most kMaxCount and a multiple of the elements of D.
  explicit Acrobots(size_t count) : count_(count) {}

  // `lanes` from `first` on; the last of `used` stands in for those behind it.
  void Load(const ClassicLanes& lanes, int64_t first, size_t used) {
    const double* const from = lanes.state + 4 * first;
    const int64_t* const choice = lanes.choice + first;
    size_t k = 0;
    for (; k + hn::Lanes(D()) <= used; k += hn::Lanes(D())) {
      V s[4];
      hn::LoadInterleaved4(D(), from + 4 * k, s[0], s[1], s[2], s[3]);
      for (size_t i = 0; i < 4; ++i) {
        hn::Store(s[i], D(), state_ + i * count_ + k);
      }
    }
    for (; k < count_; ++k) {
      const double* const row = from + 4 * std::min(k, used - 1);
      for (size_t i = 0; i < 4; ++i) state_[i * count_ + k] = row[i];
    }
    for (k = 0; k < count_; ++k) {
      torque_[k] = static_cast<double>(choice[std::min(k, used - 1)] - 1);
    }
  }

  // One step.
  void Step() {
    constexpr double kTau = 0.2;  // Seconds between states.
    // y' = y + tau / 6 * (k1 + 2 k2 + 2 k3 + k4), summed from the left as
    // Gymnasium does. `slopes_` is the sum so far.
    Derive(state_);
    ForColumns([&](size_t i) HWY_ATTR {
      hn::Store(At(slope_ + i), D(), slopes_ + i);
      MoveAlong(i, kTau / 2, At(slope_ + i));
    });
    for (const double time : {kTau / 2, kTau}) {
      Derive(point_);
      ForColumns([&](size_t i) HWY_ATTR {
        const V slope = At(slope_ + i);
        hn::Store(hn::Add(At(slopes_ + i), hn::Mul(Set(2), slope)), D(),
                  slopes_ + i);
        MoveAlong(i, time, slope);
      });
    }
    Derive(point_);
    ForColumns([&](size_t i) HWY_ATTR {
      MoveAlong(i, kTau / 6, hn::Add(At(slopes_ + i), At(slope_ + i)));
    });
    ForGroups([&](size_t k) HWY_ATTR {
      const auto finish = [&](size_t column, auto limit) HWY_ATTR {
        const size_t i = column * count_ + k;
        hn::Store(limit(At(point_ + i)), D(), state_ + i);
      };
      const auto wrap = [](V v) HWY_ATTR { return Wrap(v); };
      finish(0, wrap);
      finish(1, wrap);
      finish(2, [](V v) HWY_ATTR { return Clamp(v, kAcrobotMaxVelocity1); });
      finish(3, [](V v) HWY_ATTR { return Clamp(v, kAcrobotMaxVelocity2); });
    });
  }

  // The state, and what is seen of it.
  void Store(const ClassicLanes& lanes, int64_t first, size_t used) {
    Libm::SinCos(state_, 2 * count_, sines_, cosines_);
    ForGroups([&](size_t k) HWY_ATTR {
      hn::Store(hn::Add(At(state_ + count_ + k), At(state_ + k)), D(),
                sums_ + k);
    });
    Libm::Cos(sums_, count_, sum_cosines_);
    for (size_t k = 0; k < used; ++k) {
      const int64_t lane = first + static_cast<int64_t>(k);
      for (size_t i = 0; i < 4; ++i) {
        lanes.state[4 * lane + i] = state_[i * count_ + k];
      }
      float* const row = lanes.observation + 6 * lane;
      row[0] = static_cast<float>(cosines_[k]);
      row[1] = static_cast<float>(sines_[k]);
      row[2] = static_cast<float>(cosines_[count_ + k]);
      row[3] = static_cast<float>(sines_[count_ + k]);
      row[4] = static_cast<float>(state_[2 * count_ + k]);
      row[5] = static_cast<float>(state_[3 * count_ + k]);
      // Height of the free end above the joint, with links of length 1.
      const bool is_up = -cosines_[k] - sum_cosines_[k] > 1.0;
      lanes.reward[lane] = is_up ? 0 : -1;
      lanes.terminated[lane] = is_up;
    }
  }

 private:
  using V = hn::Vec<D>;
  using Libm = LibmBits<D>;
  static constexpr double kPi = std::numbers::pi;

  static HWY_INLINE V Set(double value) { return hn::Set(D(), value); }
  static HWY_INLINE V At(const double* column) { return hn::Load(D(), column); }

  template <typename Body>
  HWY_INLINE void ForGroups(const Body& body) const {
    for (size_t k = 0; k < count_; k += hn::Lanes(D())) body(k);
  }

  template <typename Body>
  HWY_INLINE void ForColumns(const Body& body) const {
    for (size_t i = 0; i < 4 * count_; i += hn::Lanes(D())) body(i);
  }

  HWY_INLINE void MoveAlong(size_t i, double time, V slope) {
    hn::Store(hn::Add(At(state_ + i), hn::Mul(Set(time), slope)), D(),
              point_ + i);
  }

  // Sets slope_ to what the columns `s` change by in a second.
  void Derive(const double* s) {
    constexpr double kCenter = 0.5;  // Of mass, along a link of length 1.
    constexpr double kGravity = 9.8;
    const double* const velocities = s + 2 * count_;
    ForGroups([&](size_t k) HWY_ATTR {
      const V angle1 = At(s + k);
      const V angle2 = At(s + count_ + k);
      hn::Store(hn::Sub(angle1, Set(kPi / 2)), D(), from_level_ + k);
      hn::Store(hn::Sub(hn::Add(angle1, angle2), Set(kPi / 2)), D(),
                from_level_ + count_ + k);
    });
    Libm::SinCos(s + count_, count_, sines_, cosine2_);
    Libm::Cos(from_level_, 2 * count_, cosines_);
    Libm::PowTwo(velocities, 2 * count_, squares_);
    ForGroups([&](size_t k) HWY_ATTR {
      hn::Store(
          hn::Add(hn::Add(Set(0.25), hn::Mul(Set(kCenter), At(cosine2_ + k))),
                  Set(1)),
          D(), d2_ + k);
    });
    Libm::PowTwo(d2_, count_, d2_squares_);
    // A loop, not ForGroups: compilers do not inline as long a body.
    for (size_t k = 0; k < count_; k += hn::Lanes(D())) {
      const V velocity1 = At(velocities + k);
      const V velocity2 = At(velocities + count_ + k);
      const V sin2 = At(sines_ + k);
      const V d2_k = At(d2_ + k);
      const V d1 = hn::Add(
          hn::Add(hn::Add(Set(0.25), hn::Add(Set(1.25), At(cosine2_ + k))),
                  Set(1)),
          Set(1));
      const V phi2 =
          hn::Mul(Set(kCenter * kGravity), At(cosines_ + count_ + k));
      const V turning = hn::Sub(
          hn::Mul(hn::Mul(Set(-kCenter), At(squares_ + count_ + k)), sin2),
          hn::Mul(hn::Mul(velocity2, velocity1), sin2));
      const V falling = hn::Mul(Set(1.5 * kGravity), At(cosines_ + k));
      const V phi1 = hn::Add(hn::Add(turning, falling), phi2);
      const V pull = hn::Add(At(torque_ + k), hn::Mul(hn::Div(d2_k, d1), phi1));
      const V swing = hn::Mul(hn::Mul(Set(kCenter), At(squares_ + k)), sin2);
      const V acceleration2 =
          hn::Div(hn::Sub(hn::Sub(pull, swing), phi2),
                  hn::Sub(Set(0.25 + 1.0), hn::Div(At(d2_squares_ + k), d1)));
      const V acceleration1 =
          hn::Div(hn::Neg(hn::Add(hn::Mul(d2_k, acceleration2), phi1)), d1);
      hn::Store(velocity1, D(), slope_ + k);
      hn::Store(velocity2, D(), slope_ + count_ + k);
      hn::Store(acceleration1, D(), slope_ + 2 * count_ + k);
      hn::Store(acceleration2, D(), slope_ + 3 * count_ + k);
    }
  }

  // Gymnasium's loop of whole turns: fmod would round differently.
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

  const size_t count_;
  // Two angles and their velocities: 4 columns each.
  HWY_ALIGN double state_[4 * kMaxCount];
  HWY_ALIGN double point_[4 * kMaxCount];  // Where the next slope is taken.
  HWY_ALIGN double slope_[4 * kMaxCount];
  HWY_ALIGN double slopes_[4 * kMaxCount];  // Their weighted sum.
  HWY_ALIGN double torque_[kMaxCount];      // At the joint between the links.
  // Results on the way.
  HWY_ALIGN double from_level_[2 * kMaxCount];
  HWY_ALIGN double sines_[2 * kMaxCount];
  HWY_ALIGN double cosines_[2 * kMaxCount];
  HWY_ALIGN double cosine2_[kMaxCount];
  HWY_ALIGN double d2_[kMaxCount];
  HWY_ALIGN double d2_squares_[kMaxCount];
  HWY_ALIGN double squares_[2 * kMaxCount];
  HWY_ALIGN double sums_[kMaxCount];
  HWY_ALIGN double sum_cosines_[kMaxCount];
};

template <class D>
void StepSome(const ClassicLanes& lanes, int64_t first, size_t used) {
  const size_t group = hn::Lanes(D());
  Acrobots<D> acrobots((used + group - 1) / group * group);
  acrobots.Load(lanes, first, used);
  acrobots.Step();
  acrobots.Store(lanes, first, used);
}

void StepAll(const ClassicLanes& lanes) {
  using D = hn::CappedTag<double, 8>;
  constexpr auto kMost = static_cast<int64_t>(Acrobots<D>::kMaxCount);
  for (int64_t first = 0; first < lanes.lanes; first += kMost) {
    const auto used = static_cast<size_t>(std::min(kMost, lanes.lanes - first));
    if (used == 1) {  // Alone it is quicker in libm.
      StepSome<hn::CappedTag<double, 1>>(lanes, first, used);
    } else {
      StepSome<D>(lanes, first, used);
    }
  }
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
