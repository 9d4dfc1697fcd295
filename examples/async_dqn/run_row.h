// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_ASYNC_DQN_RUN_ROW_H_
#define RILL_EXAMPLES_ASYNC_DQN_RUN_ROW_H_

#include <array>
#include <limits>
#include <vector>

#include "rill/telemetry/run_files.h"

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

// Names and tags of the columns (telemetry/run_files.h).
std::vector<RunFiles::Column> RunColumns();

}  // namespace rill::async_dqn

#endif  // RILL_EXAMPLES_ASYNC_DQN_RUN_ROW_H_
