// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_MUJOCO_ENV_H_
#define RILL_ENVS_MUJOCO_MUJOCO_ENV_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mujoco/mujoco.h"
#include "rill/base/rng.h"
#include "rill/envs/env.h"
#include "rill/envs/mujoco/mujoco_model.h"

namespace rill {

// A step of one lane, for its reward.
struct MujocoStep {
  const mjModel& model;
  const mjData& data;  // After the step.
  absl::Span<const float> action;
  double velocity = 0;  // Of MujocoTask::position: its change, per second.
};
struct MujocoOutcome {
  double reward = 0;
  bool terminated = false;
};

// A task with a model. All lanes share the functions, and threads
// call them at once: they are functions of their arguments alone. They call
// nothing of MuJoCo that may fail.
struct MujocoTask {
  std::string name = "Mujoco";
  std::function<MujocoOutcome(const MujocoStep&)> reward;

  // Changes the model's initial state, in which mj_resetData left the data.
  // Draws are of (rng, episode). None: as it is. See reset_noise.h.
  std::function<void(const mjModel&, const Rng& rng, uint64_t episode, mjData*)>
      reset = nullptr;

  // Writes the observation. None: qpos, then qvel, [nq + nv].
  std::function<void(const mjModel&, const mjData&, absl::Span<double>)>
      observe = nullptr;
  int64_t observation_size = 0;  // Of `observe`.

  // None: qpos[0].
  std::function<double(const mjModel&, const mjData&)> position = nullptr;

  // Computes cacc, cfrc_int and cfrc_ext after each step.
  bool contact_forces = false;
};

// Lanes of mjData over one model: Gymnasium's MujocoEnv for any model.
//
// A step sets ctrl, calls mj_step frame_skip times, observes and rewards.
// Values that are not integrated (xpos, cinert, cfrc_ext, ...) are those of the
// last mj_step, one substep behind qpos, as in Gymnasium. Shapes: observation
// float64 [lanes, n] and action float32 [lanes, nu], as
//   Gymnasium's. Actions are inside actuator_ctrlrange where that is limited.
// State (SaveState): mjSTATE_INTEGRATION, and the position. UNIMPLEMENTED for
//   models that put bodies to sleep.
// Errors: INVALID_ARGUMENT names the option that is out of range. A simulation
//   that diverges (MuJoCo's BADQPOS, BADQVEL, BADQACC, BADCTRL), and every
//   error that would end the program inside of MuJoCo, fails its lane, as in
//   envs/lane_env.h, with MuJoCo's text.
// Cost: mj_step, the copies of action and observation, and the task's reward.
// Memory of a lane: an mjData, which
//   is model->nbuffer + model->narena bytes.
//
// Example (MujocoEnvTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(MujocoModel model, LoadMujocoModel("cart.xml"));
//   MujocoTask task = {
//       .name = "Cart",
//       .reward = [](const MujocoStep& step) -> MujocoOutcome {
//         const double x = step.data.qpos[0];
//         return {.reward = -std::abs(x - 1), .terminated = std::abs(x) > 2};
//       },
//       .reset = ResetNoise({.scale = 0.1}),
//   };
//   RILL_ASSIGN_OR_RETURN(auto env, MakeMujocoEnv(model, task,
//       {.lanes = 8, .threads = 2, .frame_skip = 5}));
struct MujocoEnvOptions {
  int64_t lanes = 1;
  int threads = 1;                // As LaneEnvOptions.
  int frame_skip = 1;             // >= 1: mj_step calls in a step.
  int64_t max_episode_steps = 0;  // As LaneEnvOptions.
  uint64_t seed = 0;
};
absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(
    const MujocoModel& model, const MujocoTask& task,
    const MujocoEnvOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_MUJOCO_MUJOCO_ENV_H_
