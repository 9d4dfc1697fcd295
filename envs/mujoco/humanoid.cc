// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/humanoid.h"

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

using envs_internal::Append;
using envs_internal::AppendState;
using envs_internal::IsInside;
using envs_internal::MakeTask;
using envs_internal::SquaredSum;
using envs_internal::TaskModel;
using envs_internal::WalkOutcome;

// Entries of a body, and of the root's free joint.
constexpr int64_t kForces = 6;
constexpr int64_t kVelocities = 6;
constexpr int64_t kInertias = 10;
constexpr int64_t kRoot = 6;

// Its x coordinate, over all bodies.
double CentreOfMass(const mjModel& model, const mjData& data) {
  double sum = 0;
  double mass = 0;
  for (int64_t i = 0; i < model.nbody; ++i) {
    sum += model.body_mass[i] * data.xipos[3 * i];
    mass += model.body_mass[i];
  }
  return sum / mass;
}

MujocoOutcome Outcome(const HumanoidOptions& options, const MujocoStep& step) {
  const bool is_healthy = IsInside(step.data.qpos[2], options.healthy_z_range);
  // From ctrl in double, where the other tasks take the float32 action.
  const double ctrl_cost =
      options.ctrl_cost_weight * SquaredSum(step.data.ctrl, step.model.nu);
  const double contact_cost =
      options.contact_cost_weight *
      SquaredSum(step.data.cfrc_ext, kForces * step.model.nbody);
  // min and max, not std::clamp: the options may have them in any order, as
  // NumPy's clip takes them.
  const double clipped =
      std::min(std::max(contact_cost, options.contact_cost_range.first),
               options.contact_cost_range.second);
  return WalkOutcome(options, step, is_healthy, ctrl_cost + clipped);
}

// The world has no rows in an observation. qfrc_actuator has none there for the
// root, which no actuator moves.
int64_t ObservationSize(const HumanoidOptions& options, const mjModel& model) {
  const int64_t bodies = model.nbody - 1;
  int64_t size = model.nq + model.nv;
  if (options.exclude_current_positions_from_observation) size -= 2;
  if (options.include_cinert_in_observation) size += kInertias * bodies;
  if (options.include_cvel_in_observation) size += kVelocities * bodies;
  if (options.include_qfrc_actuator_in_observation) size += model.nv - kRoot;
  if (options.include_cfrc_ext_in_observation) size += kForces * bodies;
  return size;
}

void Observe(const HumanoidOptions& options, const mjModel& model,
             const mjData& data, absl::Span<double> observation) {
  const int64_t bodies = model.nbody - 1;
  const int64_t skipped =
      options.exclude_current_positions_from_observation ? 2 : 0;
  double* out = AppendState(model, data, skipped, observation.data());
  if (options.include_cinert_in_observation) {
    out = Append(data.cinert + kInertias, kInertias * bodies, out);
  }
  if (options.include_cvel_in_observation) {
    out = Append(data.cvel + kVelocities, kVelocities * bodies, out);
  }
  if (options.include_qfrc_actuator_in_observation) {
    out = Append(data.qfrc_actuator + kRoot, model.nv - kRoot, out);
  }
  if (options.include_cfrc_ext_in_observation) {
    Append(data.cfrc_ext + kForces, kForces * bodies, out);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeHumanoid(
    const HumanoidOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      const MujocoModel model,
      TaskModel("MakeHumanoid", options.xml_file, gymnasium_models::kHumanoid,
                /*min_nq=*/3, /*min_nv=*/6));
  const MujocoTask task = {
      .name = "Humanoid-v5",
      .reward =
          [options](const MujocoStep& step) { return Outcome(options, step); },
      .reset = ResetNoise({.scale = options.reset_noise_scale}),
      .observe =
          [options](const mjModel& model, const mjData& data,
                    absl::Span<double> out) {
            Observe(options, model, data, out);
          },
      .observation_size = ObservationSize(options, *model),
      .position = CentreOfMass,
      .contact_forces = true,
  };
  return MakeTask(model, task, options);
}

}  // namespace rill
