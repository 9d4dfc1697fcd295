// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/classic_control/acrobot.h"

#include <cmath>
#include <numbers>

#include "rill/base/rng.h"
#include "rill/envs/classic_control/acrobot_physics.h"
#include "rill/envs/classic_control/classic_env.h"
#include "rill/specs/leaf_spec.h"

namespace rill {
namespace {

using envs_internal::MakeClassicEnv;
using envs_internal::ObservationIn;
using envs_internal::StepAcrobots;
using envs_internal::UniformIn;

constexpr double kPi = std::numbers::pi;
constexpr double kMaxVelocity1 = envs_internal::kAcrobotMaxVelocity1;
constexpr double kMaxVelocity2 = envs_internal::kAcrobotMaxVelocity2;
// A state is two angles, which are wrapped, and their velocities, which are
// clamped. One that is loaded must lie inside.
constexpr double kLow[] = {-kPi, -kPi, -kMaxVelocity1, -kMaxVelocity2};
constexpr double kHigh[] = {kPi, kPi, kMaxVelocity1, kMaxVelocity2};

// Rounded to float32, as Gymnasium's first state is.
void Init(const Rng& rng, uint64_t episode, int64_t lane, double* state) {
  for (int i = 0; i < 4; ++i) {
    state[i] =
        static_cast<float>(UniformIn(-0.1, 0.1, rng, episode, 4 * lane + i));
  }
}

// After a reset only; a step writes what it sees itself (StepAcrobots).
void Observe(const double* state, float* observation) {
  observation[0] = static_cast<float>(std::cos(state[0]));
  observation[1] = static_cast<float>(std::sin(state[0]));
  observation[2] = static_cast<float>(std::cos(state[1]));
  observation[3] = static_cast<float>(std::sin(state[1]));
  observation[4] = static_cast<float>(state[2]);
  observation[5] = static_cast<float>(state[3]);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeAcrobot(
    const AcrobotOptions& options) {
  constexpr auto kTop1 = static_cast<float>(kMaxVelocity1);
  constexpr auto kTop2 = static_cast<float>(kMaxVelocity2);
  return MakeClassicEnv(
      {.id = "Acrobot-v1",
       .name = "Acrobot",
       .observation = ObservationIn({-1, -1, -1, -1, -kTop1, -kTop2},
                                    {1, 1, 1, 1, kTop1, kTop2}),
       .action = LeafSpec::Categorical(3),
       .wanted = "0, 1 or 2",
       .low = kLow,
       .high = kHigh,
       .init = Init,
       .observe = Observe,
       .step = StepAcrobots},
      options);
}

}  // namespace rill
