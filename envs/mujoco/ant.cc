// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/ant.h"

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
using envs_internal::MakeTask;
using envs_internal::TaskModel;
using envs_internal::WalkOutcome;

constexpr int64_t kForces = 6;  // Entries of cfrc_ext of a body.

double ContactForce(const AntOptions& options, double raw) {
  // As numpy.clip: no assertion about the order of the bounds.
  return std::min(std::max(raw, options.contact_force_range.first),
                  options.contact_force_range.second);
}

MujocoOutcome Outcome(const AntOptions& options, const MujocoStep& step) {
  // The torso's: its free joint comes first, as x, y, z and a quaternion.
  const double z = step.data.qpos[2];
  const bool is_healthy =
      options.healthy_z_range.first <= z && z <= options.healthy_z_range.second;
  // The world, body 0, is part of the cost and not of the observation.
  double squares = 0;
  for (int64_t i = 0; i < kForces * step.model.nbody; ++i) {
    const double force = ContactForce(options, step.data.cfrc_ext[i]);
    squares += force * force;
  }
  const double costs = ControlCost(options.ctrl_cost_weight, step.action) +
                       options.contact_cost_weight * squares;
  return WalkOutcome(options, step, is_healthy, costs);
}

void Observe(const AntOptions& options, const mjModel& model,
             const mjData& data, absl::Span<double> out) {
  const int64_t skipped =
      options.exclude_current_positions_from_observation ? 2 : 0;
  double* forces = AppendState(model, data, skipped, out.data());
  if (!options.include_cfrc_ext_in_observation) return;
  for (int64_t i = kForces; i < kForces * model.nbody; ++i) {
    *forces++ = ContactForce(options, data.cfrc_ext[i]);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeAnt(const AntOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      const MujocoModel model,
      TaskModel("MakeAnt", options.xml_file, gymnasium_models::kAnt,
                /*min_nq=*/3, /*min_nv=*/0));
  if (options.main_body < 0 || options.main_body >= model->nbody) {
    return InvalidArgument("MakeAnt: main_body: got ", options.main_body,
                           ", want [0, ", model->nbody, ")");
  }
  const MujocoTask task = {
      .name = "Ant-v5",
      .reward =
          [options](const MujocoStep& step) { return Outcome(options, step); },
      .reset = ResetNoise(
          {.scale = options.reset_noise_scale, .normal_velocity = true}),
      .observe =
          [options](const mjModel& model, const mjData& data,
                    absl::Span<double> out) {
            Observe(options, model, data, out);
          },
      .observation_size =
          model->nq + model->nv -
          (options.exclude_current_positions_from_observation ? 2 : 0) +
          (options.include_cfrc_ext_in_observation
               ? kForces * (model->nbody - 1)
               : 0),
      // xpos is one substep behind qpos, and Gymnasium's velocity is of it.
      .position = [body = options.main_body](
                      const mjModel&,
                      const mjData& data) { return data.xpos[3 * body]; },
      .contact_forces = true,
  };
  return MakeTask(model, task, options);
}

}  // namespace rill
