// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_TASK_PARTS_H_
#define RILL_ENVS_MUJOCO_TASK_PARTS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mujoco/mujoco.h"
#include "rill/envs/env.h"
#include "rill/envs/mujoco/mujoco_env.h"
#include "rill/envs/mujoco/mujoco_model.h"

namespace rill::envs_internal {

// Parts that Gymnasium's tasks share.

// The model of `xml_file`, or of the text `built_in` where that is empty.
// INVALID_ARGUMENT, starting with `caller`, where it has fewer positions or
// degrees of freedom than the task reads.
absl::StatusOr<MujocoModel> TaskModel(absl::string_view caller,
                                      const std::string& xml_file,
                                      absl::string_view built_in,
                                      int64_t min_nq, int64_t min_nv);

// weight * the sum of squares in float32, in the order in which NumPy adds.
double ControlCost(double weight, absl::Span<const float> action);

// open_range.first < value < open_range.second.
bool IsInside(double value, const std::pair<double, double>& open_range);

// The sum of squares, in double.
double SquaredSum(const double* values, int64_t count);

// Appends to `out` and returns its new end: `count` values; positions without
// the first `skipped`, then velocities inside [-max_velocity, max_velocity].
inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();
double* Append(const double* values, int64_t count, double* out);
double* AppendState(const mjModel& model, const mjData& data, int64_t skipped,
                    double* out, double max_velocity = kUnlimited);

// The task observes its state as by AppendState; with `excludes_x` without x: a
// policy must not depend on how far the robot has come.
void ObserveState(const mjModel& model, bool excludes_x, double max_velocity,
                  MujocoTask* task);

// The step of a robot that is to move forwards and to stay healthy:
// forward_reward_weight * velocity, healthy_reward where healthy, less `costs`.
template <typename Options>
MujocoOutcome WalkOutcome(const Options& options, const MujocoStep& step,
                          bool is_healthy, double costs) {
  const double rewards = options.forward_reward_weight * step.velocity +
                         (is_healthy ? options.healthy_reward : 0);
  return {.reward = rewards - costs,
          .terminated = !is_healthy && options.terminate_when_unhealthy};
}

// MakeMujocoEnv with what the options of all tasks have.
template <typename Options>
absl::StatusOr<std::unique_ptr<Env>> MakeTask(const MujocoModel& model,
                                              const MujocoTask& task,
                                              const Options& options) {
  return MakeMujocoEnv(model, task,
                       {.lanes = options.lanes,
                        .threads = options.threads,
                        .frame_skip = options.frame_skip,
                        .max_episode_steps = options.max_episode_steps,
                        .seed = options.seed});
}

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_MUJOCO_TASK_PARTS_H_
