// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/element_kernels.h"

#include "rill/device/cuda/cuda_kernel.h"
#include "rill/transforms/rows/pair_kernels.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(element_copy, ElementCopyKernel);
RILL_CUDA_KERNEL(pair_sum_f32, PairSumKernel<float>);
RILL_CUDA_KERNEL(pair_sum_f64, PairSumKernel<double>);

}  // namespace rill::transforms_internal
