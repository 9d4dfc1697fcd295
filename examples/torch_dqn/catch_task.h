// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_DQN_CATCH_TASK_H_
#define RILL_EXAMPLES_TORCH_DQN_CATCH_TASK_H_

#include <cstdint>

#include "rill/examples/torch_dqn/trainer.h"

namespace rill::torch_dqn {

// Catch with frames of size x size pixels.
Task CatchTask(int64_t size);

}  // namespace rill::torch_dqn

#endif  // RILL_EXAMPLES_TORCH_DQN_CATCH_TASK_H_
