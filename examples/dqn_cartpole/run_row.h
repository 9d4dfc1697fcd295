// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_RUN_ROW_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_RUN_ROW_H_

#include <vector>

#include "rill/telemetry/run_files.h"

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

using RunRow = rill::RunRow<Column>;

// Names and tags of the columns (telemetry/run_files.h).
std::vector<RunFiles::Column> RunColumns();

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_RUN_ROW_H_
