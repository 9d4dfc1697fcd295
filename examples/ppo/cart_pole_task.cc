// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/cart_pole_task.h"

#include <cstdint>

#include "rill/envs/cart_pole.h"

namespace rill::ppo {

Task CartPoleTask() {
  Task task;
  task.program = "ppo_cart_pole";
  task.defaults.learning_rate = 1e-3;
  task.make_env = [](int64_t lanes, uint64_t seed) {
    return MakeCartPole({.lanes = lanes, .seed = seed});
  };
  return task;
}

}  // namespace rill::ppo
