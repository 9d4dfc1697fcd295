// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/hopper.h"

#include <algorithm>
#include <memory>

#include "absl/status/statusor.h"
#include "gymnasium_models/models.h"
#include "mujoco/mujoco.h"
#include "rill/base/status_macros.h"
#include "rill/envs/mujoco/mujoco_env.h"
#include "rill/envs/mujoco/mujoco_model.h"
#include "rill/envs/mujoco/reset_noise.h"
#include "rill/envs/mujoco/task_parts.h"

namespace rill {
namespace {

using envs_internal::ControlCost;
using envs_internal::IsInside;
using envs_internal::MakeTask;
using envs_internal::ObserveState;
using envs_internal::TaskModel;
using envs_internal::WalkOutcome;

// The state is looked at without x and z: qpos[2] on, and all velocities.
bool IsHealthy(const HopperOptions& options, const mjModel& model,
               const mjData& data) {
  const auto in_range = [&options](double value) {
    return IsInside(value, options.healthy_state_range);
  };
  return IsInside(data.qpos[1], options.healthy_z_range) &&
         IsInside(data.qpos[2], options.healthy_angle_range) &&
         std::all_of(data.qpos + 2, data.qpos + model.nq, in_range) &&
         std::all_of(data.qvel, data.qvel + model.nv, in_range);
}

MujocoOutcome Outcome(const HopperOptions& options, const MujocoStep& step) {
  return WalkOutcome(options, step, IsHealthy(options, step.model, step.data),
                     ControlCost(options.ctrl_cost_weight, step.action));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeHopper(const HopperOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      const MujocoModel model,
      TaskModel("MakeHopper", options.xml_file, gymnasium_models::kHopper,
                /*min_nq=*/3, /*min_nv=*/0));
  MujocoTask task = {
      .name = "Hopper-v5",
      .reward =
          [options](const MujocoStep& step) { return Outcome(options, step); },
      .reset = ResetNoise({.scale = options.reset_noise_scale}),
  };
  // Gymnasium clips velocities in what is observed, not in the simulation.
  ObserveState(*model, options.exclude_current_positions_from_observation,
               /*max_velocity=*/10, &task);
  return MakeTask(model, task, options);
}

}  // namespace rill
