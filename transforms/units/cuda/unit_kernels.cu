// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "rill/device/cuda/cuda_kernel.h"
#include "rill/transforms/units/hindsight_kernels.h"
#include "rill/transforms/units/n_step_kernels.h"
#include "rill/transforms/units/slice_marks_kernels.h"
#include "rill/transforms/units/stack_frames_kernels.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(n_step, NStepKernel);
RILL_CUDA_KERNEL(slice_marks, SliceMarksKernel);
RILL_CUDA_KERNEL(stack_frames_8, StackFramesKernel<uint8_t>);
RILL_CUDA_KERNEL(stack_frames_64, StackFramesKernel<uint64_t>);
RILL_CUDA_KERNEL(hindsight_done, HindsightDoneKernel);

}  // namespace rill::transforms_internal
