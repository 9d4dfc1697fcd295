// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/walker2d.h"

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

// qpos is x, z, angle, then the joints.
bool IsHealthy(const Walker2dOptions& options, const mjData& data) {
  return IsInside(data.qpos[1], options.healthy_z_range) &&
         IsInside(data.qpos[2], options.healthy_angle_range);
}

MujocoOutcome Outcome(const Walker2dOptions& options, const MujocoStep& step) {
  const bool is_healthy = IsHealthy(options, step.data);
  const double rewards = options.forward_reward_weight * step.velocity +
                         (is_healthy ? options.healthy_reward : 0);
  return {
      .reward = rewards - ControlCost(options.ctrl_cost_weight, step.action),
      .terminated = !is_healthy && options.terminate_when_unhealthy};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeWalker2d(
    const Walker2dOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      const MujocoModel model,
      TaskModel("MakeWalker2d", options.xml_file, gymnasium_models::kWalker2d,
                /*min_nq=*/3, /*min_nv=*/0));
  const int64_t skipped =
      options.exclude_current_positions_from_observation ? 1 : 0;
  const MujocoTask task = {
      .name = "Walker2d-v5",
      .reward =
          [options](const MujocoStep& step) { return Outcome(options, step); },
      .reset = ResetNoise({.scale = options.reset_noise_scale}),
      .observe =
          [skipped](const mjModel& model, const mjData& data,
                    absl::Span<double> out) {
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
