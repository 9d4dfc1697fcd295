// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_SAC_HALF_CHEETAH_TASK_H_
#define RILL_EXAMPLES_TORCH_SAC_HALF_CHEETAH_TASK_H_

#include "rill/examples/torch_sac/worker.h"

namespace rill::torch_sac {

// HalfCheetah-v5: runs forwards.
Task HalfCheetahTask();

}  // namespace rill::torch_sac

#endif  // RILL_EXAMPLES_TORCH_SAC_HALF_CHEETAH_TASK_H_
