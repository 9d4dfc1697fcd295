// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_ASYNC_DQN_RUN_FILES_H_
#define RILL_EXAMPLES_ASYNC_DQN_RUN_FILES_H_

#include <array>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/telemetry/csv_writer.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/tensorboard_writer.h"

namespace rill::async_dqn {

// The columns of curve.csv, in order.
enum Column {
  kFrames,
  kEpisodes,
  kMeanReturn,  // Of the last 100 episodes that workers ended.
  kEvaluation,  // Mean return of 100 greedy episodes.
  kUpdates,
  kWeights,  // The version that the workers can read.
  kKills,
  kRestarts,
  kResidentMb,  // These five are of resources.h.
  kChildrenMb,
  kDescriptors,
  kMappings,
  kProcesses,
  kSeconds,
  kFramesPerSecond,  // Since the row before.
  kNumColumns,
};

// One row, by Column; NaN where there is no value.
struct RunRow {
  RunRow() { values.fill(std::numeric_limits<double>::quiet_NaN()); }
  double& operator[](Column column) { return values[column]; }
  double operator[](Column column) const { return values[column]; }

  std::array<double, kNumColumns> values;
};

// The folder that a run writes: curve.csv, TensorBoard events, curve.svg.
// Thread-safety: thread-compatible.
class RunFiles {
 public:
  // Makes `path`. FAILED_PRECONDITION if it exists.
  static absl::StatusOr<std::unique_ptr<RunFiles>> Create(
      const std::string& path, absl::Time now);

  // Appends a row to curve.csv and to the events.
  absl::Status Write(const RunRow& row, absl::Time now);
  // Replaces curve.svg.
  absl::Status WriteCurve(const LearningCurve& curve) const;

 private:
  RunFiles(std::string path, std::unique_ptr<CsvWriter> csv,
           std::unique_ptr<TensorBoardWriter> events);

  std::string path_;
  std::unique_ptr<CsvWriter> csv_;
  std::unique_ptr<TensorBoardWriter> events_;
};

}  // namespace rill::async_dqn

#endif  // RILL_EXAMPLES_ASYNC_DQN_RUN_FILES_H_
