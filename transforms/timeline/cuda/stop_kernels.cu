// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/timeline/stop_kernels.h"

#include "rill/device/cuda/cuda_kernel.h"
#include "rill/transforms/timeline/line_mask_kernel.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(stops, StopKernel);
RILL_CUDA_KERNEL(line_mask, LineMaskKernel);

}  // namespace rill::transforms_internal
