// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/half_cheetah_task.h"

#include <cstdint>

#include "rill/envs/mujoco/half_cheetah.h"

namespace rill::ppo {

Task HalfCheetahTask() {
  Task task;
  task.program = "ppo_half_cheetah";
  // One lane of 2048 steps a round, as CleanRL has it.
  task.defaults = {.lanes = 1,
                   .steps_per_round = 2048,
                   .total_steps = 1'000'000,
                   .normalize_observation = true,
                   .normalize_reward = true,
                   .epochs = 10,
                   .minibatches = 32,
                   .learning_rate = 3e-4,
                   .evaluation_episodes = 20,
                   .solve_return = 1400,
                   .log_every = 20'480};
  task.make_env = [](int64_t lanes, uint64_t seed) {
    return MakeHalfCheetah({.lanes = lanes, .seed = seed});
  };
  return task;
}

}  // namespace rill::ppo
