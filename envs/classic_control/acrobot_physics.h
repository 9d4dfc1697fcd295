// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CLASSIC_CONTROL_ACROBOT_PHYSICS_H_
#define RILL_ENVS_CLASSIC_CONTROL_ACROBOT_PHYSICS_H_

#include <numbers>

#include "rill/envs/classic_control/classic_env.h"

namespace rill::envs_internal {

// A state is 4 doubles: two angles in [-pi, pi] and their velocities.
inline constexpr double kAcrobotMaxVelocity1 = 4 * std::numbers::pi;
inline constexpr double kAcrobotMaxVelocity2 = 9 * std::numbers::pi;

// ClassicTask::step of Acrobot-v1: four stages of Runge and Kutta.
void StepAcrobots(const ClassicLanes& lanes);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_CLASSIC_CONTROL_ACROBOT_PHYSICS_H_
