// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/catch_task.h"

#include <cstdint>

#include "rill/examples/torch_dqn/catch_env.h"
#include "rill/examples/torch_dqn/trainer.h"

namespace rill::torch_dqn {

Task CatchTask(int64_t size) {
  return {.name = "Catch",
          .make_env =
              [size](int64_t lanes) {
                return MakeCatch({.lanes = lanes, .size = size});
              },
          .sizes = {.height = size, .width = size, .actions = kCatchActions},
          .solve_return = 9};
}

}  // namespace rill::torch_dqn
