// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_TASK_PARTS_H_
#define RILL_ENVS_MUJOCO_TASK_PARTS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mujoco/mujoco.h"
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
double* Append(const double* values, int64_t count, double* out);
double* AppendState(const mjModel& model, const mjData& data, int64_t skipped,
                    double max_velocity, double* out);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_MUJOCO_TASK_PARTS_H_
