// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/hash_kernel.h"

#include "rill/device/cuda/cuda_kernel.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(hash, HashKernel);

}  // namespace rill::transforms_internal
