// SPDX-License-Identifier: Apache-2.0
// Soft actor-critic learns Pendulum-v1 in a few minutes, with networks of
// LibTorch.
#include "rill/examples/torch_sac/pendulum_task.h"
#include "rill/examples/torch_sac/program.h"

int main(int argc, char** argv) {
  return rill::torch_sac::RunProgram(argc, argv,
                                     rill::torch_sac::PendulumTask(),
                                     {.total_steps = 10'000,
                                      .random_steps = 1'000,
                                      .evaluate_every = 1'000,
                                      .evaluation_episodes = 20});
}
