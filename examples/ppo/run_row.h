// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_RUN_ROW_H_
#define RILL_EXAMPLES_PPO_RUN_ROW_H_

#include <vector>

#include "rill/telemetry/run_files.h"

namespace rill::ppo {

// The columns of curve.csv, in order. The last two are wall time: all others
// are equal in every run of one seed and build.
enum Column {
  kSteps,
  kEpisodes,
  kMeanReturn,  // Of the last 100 episodes.
  kLearningRate,
  kPolicyLoss,  // Mean since the row before, as are the next five.
  kValueLoss,
  kEntropy,
  kApproxKl,
  kClipFraction,
  kGradientNorm,
  kSeconds,
  kStepsPerSecond,  // Since the beginning.
  kNumColumns,
};

using RunRow = rill::RunRow<Column>;

// Names and tags of the columns (telemetry/run_files.h).
std::vector<RunFiles::Column> RunColumns();

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_RUN_ROW_H_
