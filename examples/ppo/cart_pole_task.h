// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_CART_POLE_TASK_H_
#define RILL_EXAMPLES_PPO_CART_POLE_TASK_H_

#include "rill/examples/ppo/task.h"

namespace rill::ppo {

// CartPole-v1 with 8 lanes of 32 steps a round.
Task CartPoleTask();

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_CART_POLE_TASK_H_
