// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/walker2d.h"

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

// qpos is x, z, angle, then the joints.
bool IsHealthy(const Walker2dOptions& options, const mjData& data) {
  return IsInside(data.qpos[1], options.healthy_z_range) &&
         IsInside(data.qpos[2], options.healthy_angle_range);
}

MujocoOutcome Outcome(const Walker2dOptions& options, const MujocoStep& step) {
  return WalkOutcome(options, step, IsHealthy(options, step.data),
                     ControlCost(options.ctrl_cost_weight, step.action));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeWalker2d(
    const Walker2dOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      const MujocoModel model,
      TaskModel("MakeWalker2d", options.xml_file, gymnasium_models::kWalker2d,
                /*min_nq=*/3, /*min_nv=*/0));
  MujocoTask task = {
      .name = "Walker2d-v5",
      .reward =
          [options](const MujocoStep& step) { return Outcome(options, step); },
      .reset = ResetNoise({.scale = options.reset_noise_scale}),
  };
  ObserveState(*model, options.exclude_current_positions_from_observation,
               /*max_velocity=*/10, &task);
  return MakeTask(model, task, options);
}

}  // namespace rill
