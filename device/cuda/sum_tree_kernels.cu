// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/cuda_kernel.h"
#include "rill/device/sum_tree/tree_kernels.h"

namespace rill::device_internal {

RILL_CUDA_KERNEL(sum_tree_set, TreeSetKernel);
RILL_CUDA_KERNEL(sum_tree_find, TreeFindKernel);
RILL_CUDA_KERNEL(sum_tree_sample, TreeSampleKernel);

}  // namespace rill::device_internal
