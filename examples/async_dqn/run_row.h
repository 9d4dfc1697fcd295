// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_ASYNC_DQN_RUN_ROW_H_
#define RILL_EXAMPLES_ASYNC_DQN_RUN_ROW_H_

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

using RunRow = rill::RunRow<Column>;

// Names and tags of the columns (telemetry/run_files.h).
std::vector<RunFiles::Column> RunColumns();

}  // namespace rill::async_dqn

#endif  // RILL_EXAMPLES_ASYNC_DQN_RUN_ROW_H_
