// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/run_row.h"

#include <vector>

namespace rill::dqn_cartpole {

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

}  // namespace rill::dqn_cartpole
