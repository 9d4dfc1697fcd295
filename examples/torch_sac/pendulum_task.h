// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_SAC_PENDULUM_TASK_H_
#define RILL_EXAMPLES_TORCH_SAC_PENDULUM_TASK_H_

#include "rill/examples/torch_sac/worker.h"

namespace rill::torch_sac {

// Swings a pendulum up; a policy that holds it there has a return of -150.
Task PendulumTask();

}  // namespace rill::torch_sac

#endif  // RILL_EXAMPLES_TORCH_SAC_PENDULUM_TASK_H_
