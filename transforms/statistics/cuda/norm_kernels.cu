// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/cuda_kernel.h"
#include "rill/transforms/statistics/exact_norm_kernels.h"
#include "rill/transforms/statistics/return_scaling_kernel.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(norm_check, NormCheckKernel);
RILL_CUDA_KERNEL(exact_norm, ExactNormKernel);
RILL_CUDA_KERNEL(return_scaling, ReturnScalingKernel);

}  // namespace rill::transforms_internal
