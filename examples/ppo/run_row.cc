// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/run_row.h"

#include <vector>

namespace rill::ppo {

std::vector<RunFiles::Column> RunColumns() {
  return {
      {"steps", "progress/steps"},
      {"episodes", "progress/episodes"},
      {"mean_return", "train/mean_return"},
      {"learning_rate", "train/learning_rate"},
      {"policy_loss", "loss/policy"},
      {"value_loss", "loss/value"},
      {"entropy", "loss/entropy"},
      {"approx_kl", "loss/approx_kl"},
      {"clip_fraction", "loss/clip_fraction"},
      {"gradient_norm", "loss/gradient_norm"},
      {"seconds", "time/seconds"},
      {"steps_per_second", "time/steps_per_second"},
  };
}

}  // namespace rill::ppo
