// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/cart_pole_physics.h"

#include <cmath>
#include <cstddef>
#include <numbers>

// Every operation below stands where it stands in gymnasium 1.4.0
// (envs/classic_control/cartpole.py): another order or a fused multiply-add
// rounds differently, and within 500 steps that grows to another ending.

namespace rill::envs_internal {
namespace {

constexpr double kGravity = 9.8;
constexpr double kMassCart = 1.0;
constexpr double kMassPole = 0.1;
constexpr double kTotalMass = kMassPole + kMassCart;
constexpr double kLength = 0.5;  // Half the pole's.
constexpr double kPoleMassLength = kMassPole * kLength;
constexpr double kForce = 10.0;
constexpr double kTau = 0.02;  // Seconds between states.
constexpr double kMaxAngle = 12 * 2 * std::numbers::pi / 360;
constexpr double kMaxX = 2.4;
constexpr double kInitLow = -0.05;
constexpr double kInitHigh = 0.05;

}  // namespace

void StepCartPoles(absl::Span<const int64_t> actions, double* state,
                   float* observation, bool* is_terminated) {
  for (size_t lane = 0; lane < actions.size(); ++lane) {
    double* s = state + lane * kCartPoleStateSize;
    const double force = actions[lane] == 1 ? kForce : -kForce;
    const double cos_angle = std::cos(s[2]);
    const double sin_angle = std::sin(s[2]);
    const double temp =
        (force + kPoleMassLength * (s[3] * s[3]) * sin_angle) / kTotalMass;
    const double angle_acceleration =
        (kGravity * sin_angle - cos_angle * temp) /
        (kLength *
         (4.0 / 3.0 - kMassPole * (cos_angle * cos_angle) / kTotalMass));
    const double x_acceleration =
        temp - kPoleMassLength * angle_acceleration * cos_angle / kTotalMass;
    s[0] = s[0] + kTau * s[1];
    s[1] = s[1] + kTau * x_acceleration;
    s[2] = s[2] + kTau * s[3];
    s[3] = s[3] + kTau * angle_acceleration;
    for (int64_t i = 0; i < kCartPoleStateSize; ++i) {
      observation[lane * kCartPoleStateSize + i] = static_cast<float>(s[i]);
    }
    is_terminated[lane] =
        s[0] < -kMaxX || s[0] > kMaxX || s[2] < -kMaxAngle || s[2] > kMaxAngle;
  }
}

void InitCartPole(const Rng& rng, uint64_t episode, int64_t lane,
                  double* state) {
  for (int64_t i = 0; i < kCartPoleStateSize; ++i) {
    const auto draw = static_cast<uint32_t>(lane * kCartPoleStateSize + i);
    state[i] =
        kInitLow + (kInitHigh - kInitLow) * rng.UniformDouble(episode, draw);
  }
}

}  // namespace rill::envs_internal
