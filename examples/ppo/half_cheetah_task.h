// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_HALF_CHEETAH_TASK_H_
#define RILL_EXAMPLES_PPO_HALF_CHEETAH_TASK_H_

#include "rill/examples/ppo/task.h"

namespace rill::ppo {

// HalfCheetah-v5 with the hyperparameters of CleanRL's
// ppo_continuous_action.py.
Task HalfCheetahTask();

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_HALF_CHEETAH_TASK_H_
