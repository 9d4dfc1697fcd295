// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_RUN_LOG_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_RUN_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/run_files.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::dqn_cartpole {

// The columns of curve.csv, in order. The last two are wall time: all others
// are equal in every run of one seed and build, resumed or not.
enum Column {
  kSteps,       // Frames so far, all lanes together.
  kEpisodes,    // Episodes that have ended.
  kUpdates,     // Updates of the learner.
  kEpsilon,     // Share of random actions.
  kMeanReturn,  // Of the last 100 episodes that ended.
  kLoss,        // Mean since the row before, as are the next two.
  kMeanValue,
  kGradientNorm,
  kProbeReturn,       // Mean of a few greedy episodes.
  kEvaluationReturn,  // Mean of the evaluation that decides; empty if none.
  kSeconds,           // Wall time so far.
  kStepsPerSecond,    // Since the row before.
  kNumColumns,
};

// Names and tags of the columns (telemetry/run_files.h).
std::vector<RunFiles::Column> RunColumns();

using RunRow = rill::RunRow<Column>;

// The results of a run: the rows of the curve and the return of every episode.
// A value. Thread-safety: thread-compatible.
class RunLog {
 public:
  static constexpr int64_t kWindow = 100;  // Episodes of the running mean.

  void AddEpisode(double step, double episode_return);
  void AddRow(const RunRow& row) { rows_.push_back(row); }

  const std::vector<RunRow>& rows() const { return rows_; }
  const std::vector<CurvePoint>& episodes() const { return episodes_; }
  // Over the last kWindow episodes; NaN before the first. O(kWindow).
  double MeanReturn() const;

  // The header and one line a row; empty cells where there is no value.
  std::string Csv() const;
  // For PlotOf; evaluations are the rows' probes and evaluations.
  LearningCurve Curve(std::string title, double threshold) const;

  // `rows` float64 [n, kNumColumns] and `episodes` float64 [m, 2], each left
  // out where it is empty. FromDict: DATA_LOSS where a shape or dtype is
  // another.
  absl::StatusOr<TensorDict> ToDict() const;
  static absl::StatusOr<RunLog> FromDict(const TensorDict& dict);

 private:
  std::vector<RunRow> rows_;
  std::vector<CurvePoint> episodes_;
};

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_RUN_LOG_H_
