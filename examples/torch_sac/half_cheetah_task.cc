// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/half_cheetah_task.h"

#include <cstdint>

#include "rill/envs/mujoco/half_cheetah.h"

namespace rill::torch_sac {

Task HalfCheetahTask() {
  return {.name = "HalfCheetah-v5",
          .make_env =
              [](int64_t lanes) { return MakeHalfCheetah({.lanes = lanes}); },
          .sizes = {.observation = 17, .action = 6},
          .bounds = {.low = {-1}, .high = {1}},
          .solve_return = 5000};
}

}  // namespace rill::torch_sac
