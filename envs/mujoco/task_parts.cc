// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/task_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mujoco/mujoco.h"
#include "rill/base/status_macros.h"

namespace rill::envs_internal {

absl::StatusOr<MujocoModel> TaskModel(absl::string_view caller,
                                      const std::string& xml_file,
                                      absl::string_view built_in,
                                      int64_t min_nq, int64_t min_nv) {
  // The built-in models are known to fit.
  if (xml_file.empty()) return ParseMujocoModel(built_in);
  RILL_ASSIGN_OR_RETURN(MujocoModel model, LoadMujocoModel(xml_file));
  // The tasks read qpos and qvel by number.
  if (model->nq < min_nq || model->nv < min_nv) {
    return InvalidArgument(caller, ": nq, nv of \"", xml_file, "\": got ",
                           model->nq, ", ", model->nv, ", want >= ", min_nq,
                           ", >= ", min_nv,
                           "; for another robot write a MujocoTask");
  }
  return model;
}

double ControlCost(double weight, absl::Span<const float> action) {
  // NumPy's pairwise sum: eight at a time, as far as they go.
  const size_t blocks = action.size() / 8 * 8;
  float sum = 0;
  if (blocks > 0) {
    float part[8] = {};
    for (size_t i = 0; i < blocks; ++i) part[i % 8] += action[i] * action[i];
    sum = ((part[0] + part[1]) + (part[2] + part[3])) +
          ((part[4] + part[5]) + (part[6] + part[7]));
  }
  for (size_t i = blocks; i < action.size(); ++i) sum += action[i] * action[i];
  return static_cast<float>(weight) * sum;
}

bool IsInside(double value, const std::pair<double, double>& open_range) {
  return open_range.first < value && value < open_range.second;
}

double SquaredSum(const double* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i] * values[i];
  return sum;
}

double* Append(const double* values, int64_t count, double* out) {
  return std::copy_n(values, count, out);
}

double* AppendState(const mjModel& model, const mjData& data, int64_t skipped,
                    double* out, double max_velocity) {
  out = Append(data.qpos + skipped, model.nq - skipped, out);
  return std::transform(data.qvel, data.qvel + model.nv, out, [=](double v) {
    return std::clamp(v, -max_velocity, max_velocity);
  });
}

void ObserveState(const mjModel& model, bool excludes_x, double max_velocity,
                  MujocoTask* task) {
  const int64_t skipped = excludes_x ? 1 : 0;
  task->observation_size = model.nq + model.nv - skipped;
  task->observe = [=](const mjModel& model, const mjData& data,
                      absl::Span<double> out) {
    AppendState(model, data, skipped, out.data(), max_velocity);
  };
}

}  // namespace rill::envs_internal
