// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/hopper.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gymnasium_models/models.h"
#include "mujoco/mujoco.h"
#include "rill/base/status_macros.h"
#include "rill/envs/mujoco/mujoco_env.h"
#include "rill/envs/mujoco/mujoco_model.h"
#include "rill/envs/mujoco/reset_noise.h"
#include "rill/envs/mujoco/task_parts.h"

namespace rill {
namespace {

using envs_internal::AppendState;
using envs_internal::ControlCost;
using envs_internal::IsInside;
using envs_internal::TaskModel;

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
  const bool is_healthy = IsHealthy(options, step.model, step.data);
  const double rewards = options.forward_reward_weight * step.velocity +
                         (is_healthy ? options.healthy_reward : 0);
  return {
      .reward = rewards - ControlCost(options.ctrl_cost_weight, step.action),
      .terminated = !is_healthy && options.terminate_when_unhealthy};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeHopper(const HopperOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      const MujocoModel model,
      TaskModel("MakeHopper", options.xml_file, gymnasium_models::kHopper,
                /*min_nq=*/3, /*min_nv=*/0));
  const int64_t skipped =
      options.exclude_current_positions_from_observation ? 1 : 0;
  const MujocoTask task = {
      .name = "Hopper-v5",
      .reward =
          [options](const MujocoStep& step) { return Outcome(options, step); },
      .reset = ResetNoise({.scale = options.reset_noise_scale}),
      .observe =
          [skipped](const mjModel& model, const mjData& data,
                    absl::Span<double> out) {
            // Gymnasium clips velocities in what is observed, not in the
            // simulation.
            AppendState(model, data, skipped, 10, out.data());
          },
      .observation_size = model->nq + model->nv - skipped,
  };
  return MakeMujocoEnv(model, task,
                       {.lanes = options.lanes,
                        .threads = options.threads,
                        .frame_skip = options.frame_skip,
                        .max_episode_steps = options.max_episode_steps,
                        .seed = options.seed});
}

}  // namespace rill
