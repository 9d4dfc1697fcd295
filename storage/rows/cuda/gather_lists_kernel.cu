// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/gather_lists_kernel.h"

#include "rill/device/cuda/cuda_kernel.h"

namespace rill::storage_internal {

RILL_CUDA_KERNEL(gather_lists, GatherListsKernel);

}  // namespace rill::storage_internal
