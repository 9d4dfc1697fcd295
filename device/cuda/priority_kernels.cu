// SPDX-License-Identifier: Apache-2.0
#include "rill/device/priorities/priority_kernels.h"

#include "rill/device/cuda/cuda_kernel.h"

namespace rill::device_internal {

RILL_CUDA_KERNEL(priority_change, PriorityChangeKernel);
RILL_CUDA_KERNEL(priority_update, PriorityUpdateKernel);
RILL_CUDA_KERNEL(priority_level, PriorityLevelKernel);
RILL_CUDA_KERNEL(priority_draw, PriorityDrawKernel);

}  // namespace rill::device_internal
