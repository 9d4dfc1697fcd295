// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/timeline/stop_kernels.h"

#include "rill/device/cuda/cuda_kernel.h"
#include "rill/transforms/timeline/line_mask_kernel.h"
#include "rill/transforms/timeline/pick_kernels.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(stops, StopKernel);
RILL_CUDA_KERNEL(line_mask, LineMaskKernel);
RILL_CUDA_KERNEL(chunk_picks, ChunkPickKernel);
RILL_CUDA_KERNEL(next_picks, NextPickKernel);
RILL_CUDA_KERNEL(pick_1, PickKernel<uint8_t>);
RILL_CUDA_KERNEL(pick_4, PickKernel<uint32_t>);
RILL_CUDA_KERNEL(pick_16, PickKernel<SixteenPickBytes>);

}  // namespace rill::transforms_internal
