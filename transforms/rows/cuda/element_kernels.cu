// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/element_kernels.h"

#include "rill/device/cuda/cuda_kernel.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(element_copy, ElementCopyKernel);

}  // namespace rill::transforms_internal
