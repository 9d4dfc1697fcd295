// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/half_cheetah.h"

#include <memory>

#include "absl/status/statusor.h"
#include "gymnasium_models/models.h"
#include "rill/base/status_macros.h"
#include "rill/envs/mujoco/mujoco_env.h"
#include "rill/envs/mujoco/mujoco_model.h"
#include "rill/envs/mujoco/reset_noise.h"
#include "rill/envs/mujoco/task_parts.h"

namespace rill {
namespace {

using envs_internal::ControlCost;
using envs_internal::kUnlimited;
using envs_internal::MakeTask;
using envs_internal::ObserveState;
using envs_internal::TaskModel;

MujocoOutcome Outcome(const HalfCheetahOptions& options,
                      const MujocoStep& step) {
  return {.reward = options.forward_reward_weight * step.velocity -
                    ControlCost(options.ctrl_cost_weight, step.action)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeHalfCheetah(
    const HalfCheetahOptions& options) {
  RILL_ASSIGN_OR_RETURN(const MujocoModel model,
                        TaskModel("MakeHalfCheetah", options.xml_file,
                                  gymnasium_models::kHalfCheetah,
                                  /*min_nq=*/1, /*min_nv=*/0));
  MujocoTask task = {
      .name = "HalfCheetah-v5",
      .reward =
          [options](const MujocoStep& step) { return Outcome(options, step); },
      .reset = ResetNoise(
          {.scale = options.reset_noise_scale, .normal_velocity = true}),
  };
  ObserveState(*model, options.exclude_current_positions_from_observation,
               kUnlimited, &task);
  return MakeTask(model, task, options);
}

}  // namespace rill
