// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/acrobot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/classic_control/classic_env.h"
#include "rill/envs/classic_control/pow_two.h"
#include "rill/tensordict/leaf_spec.h"
#include "rill/tensordict/tensor.h"

// Operations stand where they stand in gymnasium 1.4.0
// (envs/classic_control/acrobot.py), less those with constants of 1.

namespace rill {
namespace {

using envs_internal::ClassicLanes;
using envs_internal::MakeClassicEnv;
using envs_internal::PowTwo;
using envs_internal::UniformIn;

constexpr double kPi = std::numbers::pi;
constexpr double kMaxVelocity1 = 4 * kPi;
constexpr double kMaxVelocity2 = 9 * kPi;
constexpr double kLow[] = {-kPi, -kPi, -kMaxVelocity1, -kMaxVelocity2};
constexpr double kHigh[] = {kPi, kPi, kMaxVelocity1, kMaxVelocity2};
constexpr double kCenter = 0.5;  // Of mass, along a link of length 1.
constexpr double kGravity = 9.8;
constexpr double kTau = 0.2;  // Seconds between states.

// Two angles and their velocities, or what these change by in a second.
using State = std::array<double, 4>;

// `torque` is at the joint between the links.
State Derivative(const State& s, double torque) {
  const double cos2 = std::cos(s[1]);
  const double sin2 = std::sin(s[1]);
  const double d1 = 0.25 + (1.25 + cos2) + 1.0 + 1.0;
  const double d2 = 0.25 + kCenter * cos2 + 1.0;
  const double phi2 = kCenter * kGravity * std::cos(s[0] + s[1] - kPi / 2);
  const double phi1 = -kCenter * PowTwo(s[3]) * sin2 - s[3] * s[2] * sin2 +
                      1.5 * kGravity * std::cos(s[0] - kPi / 2) + phi2;
  const double acceleration2 =
      (torque + d2 / d1 * phi1 - kCenter * PowTwo(s[2]) * sin2 - phi2) /
      (0.25 + 1.0 - PowTwo(d2) / d1);
  const double acceleration1 = -(d2 * acceleration2 + phi1) / d1;
  return {s[2], s[3], acceleration1, acceleration2};
}

State Along(const State& s, double time, const State& slope) {
  State to;
  for (int i = 0; i < 4; ++i) to[i] = s[i] + time * slope[i];
  return to;
}

State RungeKutta(const State& s, double torque) {
  const State k1 = Derivative(s, torque);
  const State k2 = Derivative(Along(s, kTau / 2, k1), torque);
  const State k3 = Derivative(Along(s, kTau / 2, k2), torque);
  const State k4 = Derivative(Along(s, kTau, k3), torque);
  State slope;
  for (int i = 0; i < 4; ++i) slope[i] = k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i];
  return Along(s, kTau / 6, slope);
}

double Wrap(double angle) {
  while (angle > kPi) angle = angle - 2 * kPi;
  while (angle < -kPi) angle = angle + 2 * kPi;
  return angle;
}

void Init(const Rng& rng, uint64_t episode, int64_t lane, double* state) {
  for (int i = 0; i < 4; ++i) {
    state[i] =
        static_cast<float>(UniformIn(-0.1, 0.1, rng, episode, 4 * lane + i));
  }
}

void Observe(const double* state, float* observation) {
  observation[0] = static_cast<float>(std::cos(state[0]));
  observation[1] = static_cast<float>(std::sin(state[0]));
  observation[2] = static_cast<float>(std::cos(state[1]));
  observation[3] = static_cast<float>(std::sin(state[1]));
  observation[4] = static_cast<float>(state[2]);
  observation[5] = static_cast<float>(state[3]);
}

void Step(const ClassicLanes& lanes) {
  for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
    double* s = lanes.state + 4 * lane;
    const State next = RungeKutta({s[0], s[1], s[2], s[3]},
                                  static_cast<double>(lanes.choice[lane] - 1));
    s[0] = Wrap(next[0]);
    s[1] = Wrap(next[1]);
    s[2] = std::clamp(next[2], -kMaxVelocity1, kMaxVelocity1);
    s[3] = std::clamp(next[3], -kMaxVelocity2, kMaxVelocity2);
    const bool is_up = -std::cos(s[0]) - std::cos(s[1] + s[0]) > 1.0;
    Observe(s, lanes.observation + 6 * lane);
    lanes.reward[lane] = is_up ? 0 : -1;
    lanes.terminated[lane] = is_up;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeAcrobot(
    const AcrobotOptions& options) {
  constexpr auto kTop1 = static_cast<float>(kMaxVelocity1);
  constexpr auto kTop2 = static_cast<float>(kMaxVelocity2);
  RILL_ASSIGN_OR_RETURN(
      const Tensor low,
      Tensor::From({-1.0f, -1.0f, -1.0f, -1.0f, -kTop1, -kTop2}, {6}));
  RILL_ASSIGN_OR_RETURN(
      const Tensor high,
      Tensor::From({1.0f, 1.0f, 1.0f, 1.0f, kTop1, kTop2}, {6}));
  RILL_ASSIGN_OR_RETURN(const LeafSpec observation,
                        LeafSpec::Bounded(low, high));
  return MakeClassicEnv({.id = "Acrobot-v1",
                         .name = "Acrobot",
                         .observation = observation,
                         .action = LeafSpec::Categorical(3),
                         .wanted = "0, 1 or 2",
                         .low = kLow,
                         .high = kHigh,
                         .init = Init,
                         .observe = Observe,
                         .step = Step},
                        {.lanes = options.lanes,
                         .max_episode_steps = options.max_episode_steps,
                         .seed = options.seed});
}

}  // namespace rill
