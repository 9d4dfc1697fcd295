// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/pendulum_task.h"

#include <cstdint>

#include "rill/envs/classic_control/pendulum.h"

namespace rill::torch_sac {

Task PendulumTask() {
  return {
      .name = "Pendulum-v1",
      .make_env = [](int64_t lanes) { return MakePendulum({.lanes = lanes}); },
      .sizes = {.observation = 3, .action = 1},
      .bounds = {.low = {-2}, .high = {2}},
      .solve_return = -200};
}

}  // namespace rill::torch_sac
