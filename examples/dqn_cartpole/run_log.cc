// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/run_log.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/telemetry/csv_writer.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::dqn_cartpole {
namespace {

// A leaf [n, width] of doubles as one span; empty where there is no leaf.
absl::StatusOr<absl::Span<const double>> Table(const TensorDict& dict,
                                               absl::string_view key,
                                               int64_t width) {
  const Tensor* tensor = dict.Find(key);
  if (tensor == nullptr) return absl::Span<const double>();
  const absl::StatusOr<absl::Span<double>> flat = tensor->Flat<double>();
  if (!flat.ok() || tensor->rank() != 2 || tensor->shape()[1] != width) {
    return DataLoss("RunLog::FromDict: \"", key, "\" is ",
                    tensor->DebugString(), ", want float64[n, ", width, "]");
  }
  return absl::Span<const double>(*flat);
}

}  // namespace

std::vector<RunFiles::Column> RunColumns() {
  return {
      {"steps", "progress/steps"},
      {"episodes", "progress/episodes"},
      {"updates", "progress/updates"},
      {"epsilon", "train/epsilon"},
      {"mean_return", "train/mean_return"},
      {"loss", "train/loss"},
      {"mean_value", "train/mean_value"},
      {"gradient_norm", "train/gradient_norm"},
      {"probe_return", "evaluate/probe_return"},
      {"evaluation_return", "evaluate/evaluation_return"},
      {"seconds", "time/seconds"},
      {"steps_per_second", "time/steps_per_second"},
  };
}

void RunLog::AddEpisode(double step, double episode_return) {
  episodes_.push_back({step, episode_return});
}

double RunLog::MeanReturn() const { return MeanOfLast(episodes_, kWindow); }

std::string RunLog::Csv() const {
  std::string csv;
  const std::vector<RunFiles::Column> columns = RunColumns();
  std::vector<absl::string_view> names;
  for (const auto& column : columns) names.push_back(column.name);
  AppendCsvHeader(names, &csv);
  for (const RunRow& row : rows_) AppendCsvRow(row.values, &csv);
  return csv;
}

LearningCurve RunLog::Curve(std::string title, double threshold) const {
  LearningCurve curve;
  curve.title = std::move(title);
  curve.episodes = episodes_;
  curve.window = kWindow;
  curve.threshold = threshold;
  for (const RunRow& row : rows_) {
    // In one row both are of one step, the probe first.
    for (Column column : {kProbeReturn, kEvaluationReturn}) {
      if (std::isnan(row[column])) continue;
      curve.evaluations.push_back({row[kSteps], row[column]});
    }
  }
  return curve;
}

absl::StatusOr<TensorDict> RunLog::ToDict() const {
  TensorDict dict;
  const auto add = [&dict](absl::string_view key,
                           const std::vector<double>& flat,
                           int64_t width) -> absl::Status {
    // An array without elements is left out; FromDict takes a missing one for
    // it.
    if (flat.empty()) return absl::OkStatus();
    const int64_t height = static_cast<int64_t>(flat.size()) / width;
    RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::From(absl::MakeConstSpan(flat),
                                                      Shape{height, width}));
    return dict.Set(key, std::move(tensor));
  };
  // Flat arrays of doubles: integers up to 2^53 are exact in them.
  std::vector<double> rows, episodes;
  for (const RunRow& row : rows_) {
    rows.insert(rows.end(), row.values.begin(), row.values.end());
  }
  for (const CurvePoint& episode : episodes_) {
    episodes.insert(episodes.end(), {episode.step, episode.value});
  }
  RILL_RETURN_IF_ERROR(add("rows", rows, kNumColumns));
  RILL_RETURN_IF_ERROR(add("episodes", episodes, 2));
  return dict;
}

absl::StatusOr<RunLog> RunLog::FromDict(const TensorDict& dict) {
  RunLog log;
  RILL_ASSIGN_OR_RETURN(absl::Span<const double> rows,
                        Table(dict, "rows", kNumColumns));
  RILL_ASSIGN_OR_RETURN(absl::Span<const double> episodes,
                        Table(dict, "episodes", 2));
  for (size_t i = 0; i < rows.size(); i += kNumColumns) {
    RunRow row;
    std::copy_n(rows.begin() + i, kNumColumns, row.values.begin());
    log.AddRow(row);
  }
  for (size_t i = 0; i < episodes.size(); i += 2) {
    log.AddEpisode(episodes[i], episodes[i + 1]);
  }
  return log;
}

}  // namespace rill::dqn_cartpole
