// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/pendulum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "rill/base/rng.h"
#include "rill/envs/classic_control/classic_env.h"
#include "rill/envs/classic_control/pow_two.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"

// Operations stand where they stand in gymnasium 1.4.0
// (envs/classic_control/pendulum.py), less those with constants of 1.

namespace rill {
namespace {

using envs_internal::ClassicLanes;
using envs_internal::MakeClassicEnv;
using envs_internal::ObservationIn;
using envs_internal::PowTwo;
using envs_internal::UniformIn;

constexpr double kPi = std::numbers::pi;
constexpr double kTurn = 2 * kPi;
constexpr double kMaxVelocity = 8;
constexpr double kGravity = 10;
constexpr double kTau = 0.05;  // Seconds between states.
// Angles are not wrapped.
constexpr double kLow[] = {std::numeric_limits<double>::lowest(),
                           -kMaxVelocity};
constexpr double kHigh[] = {std::numeric_limits<double>::max(), kMaxVelocity};

void Init(const Rng& rng, uint64_t episode, int64_t lane, double* state) {
  state[0] = UniformIn(-kPi, kPi, rng, episode, 2 * lane);
  state[1] = UniformIn(-1, 1, rng, episode, 2 * lane + 1);
}

void Observe(const double* state, float* observation) {
  observation[0] = static_cast<float>(std::cos(state[0]));
  observation[1] = static_cast<float>(std::sin(state[0]));
  observation[2] = static_cast<float>(state[1]);
}

// Python's angle % kTurn: in [0, kTurn). Up to two turns away the remainder is
// exact without fmod.
double TurnsOff(double angle) {
  if (angle >= 0 && angle < kTurn) return angle;
  if (angle >= kTurn && angle <= 2 * kTurn) return angle - kTurn;
  if (angle < 0 && angle > -kTurn) return angle + kTurn;
  const double rest = std::fmod(angle, kTurn);
  return rest < 0 ? rest + kTurn : rest;
}

void Step(const ClassicLanes& lanes) {
  for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
    double* s = lanes.state + 2 * lane;
    const float torque = lanes.force[lane];
    // Gymnasium rewards the state before the step.
    const double cost = PowTwo(TurnsOff(s[0] + kPi) - kPi) +
                        0.1 * PowTwo(s[1]) +
                        static_cast<double>(0.001f * PowTwo(torque));
    const double velocity = s[1] + (3 * kGravity / 2 * std::sin(s[0]) +
                                    static_cast<double>(3.0f * torque)) *
                                       kTau;
    s[1] = std::clamp(velocity, -kMaxVelocity, kMaxVelocity);
    s[0] = s[0] + s[1] * kTau;
    Observe(s, lanes.observation + 3 * lane);
    lanes.reward[lane] = static_cast<float>(-cost);
    lanes.terminated[lane] = false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakePendulum(
    const PendulumOptions& options) {
  return MakeClassicEnv(
      {.id = "Pendulum-v1",
       .name = "Pendulum",
       .observation = ObservationIn({-1, -1, -8}, {1, 1, 8}),
       .action = LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2),
       .wanted = "[-2, 2]",
       .low = kLow,
       .high = kHigh,
       .init = Init,
       .observe = Observe,
       .step = Step},
      options);
}

}  // namespace rill
