// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/half_cheetah.h"

#include <cstdint>
#include <limits>
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
  // x itself: a policy must not depend on how far the robot has come.
  const int64_t skipped =
      options.exclude_current_positions_from_observation ? 1 : 0;
  const MujocoTask task = {
      .name = "HalfCheetah-v5",
      .reward =
          [options](const MujocoStep& step) { return Outcome(options, step); },
      .reset = ResetNoise(
          {.scale = options.reset_noise_scale, .normal_velocity = true}),
      .observe =
          [skipped](const mjModel& model, const mjData& data,
                    absl::Span<double> out) {
            AppendState(model, data, skipped,
                        std::numeric_limits<double>::infinity(), out.data());
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
