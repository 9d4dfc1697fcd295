// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_RUN_STATE_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_RUN_STATE_H_

#include <cstdint>

#include "rill/examples/dqn_cartpole/config.h"
#include "rill/examples/dqn_cartpole/phases.h"
#include "rill/telemetry/learning_curve.h"

namespace rill::dqn_cartpole {

// Where a run stands, besides its pipeline. A plain value; a checkpoint keeps
// all of it.
struct RunState {
  Config config;
  int64_t steps = 0;    // Frames so far, all lanes together.
  int64_t updates = 0;  // Updates of the learner so far.
  bool solved = false;
  double evaluation_return = 0;  // Of the last evaluation that decides.

  // The last row of the curve.
  double row_steps = 0;
  double row_seconds = 0;
  // Sums over the updates since then.
  int64_t summed_updates = 0;
  double loss_sum = 0;
  double value_sum = 0;
  double gradient_norm_sum = 0;

  Phases times;
  // Evaluations are the rows' probes and evaluations, the probe first.
  LearningCurve curve;

  // Over the last 100 episodes; NaN before the first.
  double MeanReturn() const { return MeanOfLast(curve.episodes, curve.window); }
};

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_RUN_STATE_H_
