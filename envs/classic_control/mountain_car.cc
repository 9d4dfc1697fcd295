// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/mountain_car.h"

#include <algorithm>
#include <cmath>

#include "rill/base/rng.h"
#include "rill/envs/classic_control/classic_env.h"
#include "rill/specs/leaf_spec.h"

// Operations stand where they stand in gymnasium 1.4.0
// (envs/classic_control/mountain_car.py).

namespace rill {
namespace {

using envs_internal::ClassicLanes;
using envs_internal::MakeClassicEnv;
using envs_internal::ObservationIn;
using envs_internal::UniformIn;

constexpr double kMaxSpeed = 0.07;
constexpr double kGoal = 0.5;
constexpr double kForce = 0.001;
constexpr double kGravity = 0.0025;
constexpr double kLow[] = {-1.2, -kMaxSpeed};
constexpr double kHigh[] = {0.6, kMaxSpeed};

void Init(const Rng& rng, uint64_t episode, int64_t lane, double* state) {
  state[0] = UniformIn(-0.6, -0.4, rng, episode, 2 * lane);
  state[1] = 0;
}

void Observe(const double* state, float* observation) {
  observation[0] = static_cast<float>(state[0]);
  observation[1] = static_cast<float>(state[1]);
}

void Step(const ClassicLanes& lanes) {
  for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
    double* s = lanes.state + 2 * lane;
    const auto push = static_cast<double>(lanes.choice[lane] - 1);
    double speed = s[1] + (push * kForce + std::cos(3 * s[0]) * -kGravity);
    speed = std::clamp(speed, -kMaxSpeed, kMaxSpeed);
    // With the new speed, other than CartPole's Euler step.
    const double x = std::clamp(s[0] + speed, kLow[0], kHigh[0]);
    // The left wall takes all speed; the right end has the goal before it.
    if (x == kLow[0] && speed < 0) speed = 0;
    s[0] = x;
    s[1] = speed;
    Observe(s, lanes.observation + 2 * lane);
    lanes.reward[lane] = -1;
    lanes.terminated[lane] = x >= kGoal && speed >= 0;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeMountainCar(
    const MountainCarOptions& options) {
  return MakeClassicEnv(
      {.id = "MountainCar-v0",
       .name = "MountainCar",
       .observation = ObservationIn({-1.2f, -0.07f}, {0.6f, 0.07f}),
       .action = LeafSpec::Categorical(3),
       .wanted = "0, 1 or 2",
       .low = kLow,
       .high = kHigh,
       .init = Init,
       .observe = Observe,
       .step = Step},
      options);
}

}  // namespace rill
