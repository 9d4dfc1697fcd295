// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/mountain_car_continuous.h"

#include <cmath>

#include "rill/base/rng.h"
#include "rill/envs/classic_control/classic_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"

// Operations stand where they stand in gymnasium 1.4.0
// (envs/classic_control/continuous_mountain_car.py).

namespace rill {
namespace {

using envs_internal::ClassicLanes;
using envs_internal::MakeClassicEnv;
using envs_internal::ObservationIn;
using envs_internal::UniformIn;

constexpr double kMaxSpeed = 0.07;
constexpr double kMinX = -1.2;
constexpr double kMaxX = 0.6;
constexpr double kGoal = 0.45;
constexpr double kPower = 0.0015;
constexpr double kGravity = 0.0025;
// As float32 states have them.
constexpr double kLow[] = {static_cast<float>(kMinX),
                           static_cast<float>(-kMaxSpeed)};
constexpr double kHigh[] = {static_cast<float>(kMaxX),
                            static_cast<float>(kMaxSpeed)};

void Init(const Rng& rng, uint64_t episode, int64_t lane, double* state) {
  state[0] = UniformIn(-0.6, -0.4, rng, episode, 2 * lane);
  state[1] = 0;
}

void Observe(const double* state, float* observation) {
  observation[0] = static_cast<float>(state[0]);
  observation[1] = static_cast<float>(state[1]);
}

// Moves position and velocity, and says whether the goal is reached. T is their
// type in NumPy. The force is float32, and Python's own floats take the type of
// the NumPy scalar that they meet.
template <typename T>
bool Move(float force, double* state) {
  T x = static_cast<T>(state[0]);
  T speed = static_cast<T>(state[1]);
  const auto slope = static_cast<float>(
      kGravity * std::cos(static_cast<double>(static_cast<T>(3) * x)));
  const float push = force * static_cast<float>(kPower) - slope;
  speed = speed + static_cast<T>(push);
  constexpr T kTop = static_cast<T>(kMaxSpeed);
  if (speed > kTop) speed = kTop;
  if (speed < -kTop) speed = -kTop;
  x = x + speed;
  constexpr T kRight = static_cast<T>(kMaxX);
  constexpr T kLeft = static_cast<T>(kMinX);
  if (x > kRight) x = kRight;
  if (x < kLeft) x = kLeft;
  if (x == kLeft && speed < 0) speed = 0;
  // NumPy keeps the next state in float32 whatever the step was computed in.
  state[0] = static_cast<float>(x);
  state[1] = static_cast<float>(speed);
  return x >= static_cast<T>(kGoal) && speed >= 0;
}

void Step(const ClassicLanes& lanes) {
  for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
    double* s = lanes.state + 2 * lane;
    const float force = lanes.force[lane];
    const bool is_there =
        lanes.steps[lane] == 0 ? Move<double>(force, s) : Move<float>(force, s);
    const double square = static_cast<double>(force) * force;  // Exact.
    lanes.reward[lane] =
        static_cast<float>((is_there ? 100.0 : 0.0) - square * 0.1);
    lanes.terminated[lane] = is_there;
    Observe(s, lanes.observation + 2 * lane);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeMountainCarContinuous(
    const MountainCarContinuousOptions& options) {
  return MakeClassicEnv(
      {.id = "MountainCarContinuous-v0",
       .name = "MountainCarContinuous",
       .observation = ObservationIn({-1.2f, -0.07f}, {0.6f, 0.07f}),
       .action = LeafSpec::Bounded(DType::kFloat32, {1}, -1, 1),
       .wanted = "[-1, 1]",
       .low = kLow,
       .high = kHigh,
       .has_float_states = true,
       .init = Init,
       .observe = Observe,
       .step = Step},
      options);
}

}  // namespace rill
