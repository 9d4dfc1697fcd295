// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/program/saved_log.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/run_files.h"
#include "rill/telemetry/svg_plot.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::examples {
namespace {

absl::Status SetPoints(const char* key, const std::vector<CurvePoint>& points,
                       TensorDict* state) {
  std::vector<double> numbers;
  for (const CurvePoint& point : points) {
    numbers.insert(numbers.end(), {point.step, point.value});
  }
  RILL_ASSIGN_OR_RETURN(
      Tensor leaf,
      Tensor::From(numbers, {static_cast<int64_t>(points.size()), 2}));
  return state->Set(key, std::move(leaf));
}

std::vector<CurvePoint> PointsOf(absl::Span<const double> numbers) {
  std::vector<CurvePoint> points;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    points.push_back({numbers[i], numbers[i + 1]});
  }
  return points;
}

}  // namespace

absl::StatusOr<TensorDict> SaveLog(const RunFiles& files,
                                   const LearningCurve& curve) {
  RILL_ASSIGN_OR_RETURN(const std::string position, files.SavePosition());
  RILL_ASSIGN_OR_RETURN(
      const Tensor text,
      Tensor::From(
          absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(position.data()),
                              position.size()),
          {static_cast<int64_t>(position.size())}));
  TensorDict state;
  RILL_RETURN_IF_ERROR(state.Set("position", text));
  RILL_RETURN_IF_ERROR(SetPoints("episodes", curve.episodes, &state));
  RILL_RETURN_IF_ERROR(SetPoints("evaluations", curve.evaluations, &state));
  return state;
}

absl::StatusOr<std::unique_ptr<RunFiles>> LoadLog(
    const TensorDict& state, const std::string& run_dir,
    std::vector<RunFiles::Column> columns, LearningCurve* curve) {
  RILL_ASSIGN_OR_RETURN(const auto position, state.Flat<uint8_t>("position"));
  RILL_ASSIGN_OR_RETURN(const auto episodes, state.Flat<double>("episodes"));
  RILL_ASSIGN_OR_RETURN(const auto evaluations,
                        state.Flat<double>("evaluations"));
  RILL_ASSIGN_OR_RETURN(
      auto files,
      RunFiles::Open(
          run_dir, std::move(columns),
          absl::string_view(reinterpret_cast<const char*>(position.data()),
                            position.size())));
  curve->episodes = PointsOf(episodes);
  curve->evaluations = PointsOf(evaluations);
  return files;
}

}  // namespace rill::examples
