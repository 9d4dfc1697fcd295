// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/inverted_pendulum.h"

#include <cmath>
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

using envs_internal::MakeTask;
using envs_internal::TaskModel;

// qpos is the cart's x and the pole's angle.
MujocoOutcome Outcome(const MujocoStep& step) {
  const bool terminated = std::abs(step.data.qpos[1]) > 0.2;
  return {.reward = terminated ? 0.0 : 1.0, .terminated = terminated};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeInvertedPendulum(
    const InvertedPendulumOptions& options) {
  RILL_ASSIGN_OR_RETURN(const MujocoModel model,
                        TaskModel("MakeInvertedPendulum", options.xml_file,
                                  gymnasium_models::kInvertedPendulum,
                                  /*min_nq=*/2, /*min_nv=*/0));
  const MujocoTask task = {
      .name = "InvertedPendulum-v5",
      .reward = Outcome,
      .reset = ResetNoise({.scale = options.reset_noise_scale}),
  };
  return MakeTask(model, task, options);
}

}  // namespace rill
