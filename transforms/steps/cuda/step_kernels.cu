// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/cuda_kernel.h"
#include "rill/transforms/steps/counter_kernels.h"
#include "rill/transforms/steps/episode_kernels.h"
#include "rill/transforms/steps/lane_kernels.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(lane_copy, LaneCopyKernel);
RILL_CUDA_KERNEL(lane_fill, LaneFillKernel);
RILL_CUDA_KERNEL(step_count, StepCountKernel);
RILL_CUDA_KERNEL(reward_sum_4, RewardSumKernel<float>);
RILL_CUDA_KERNEL(reward_sum_8, RewardSumKernel<double>);
RILL_CUDA_KERNEL(traj_number, TrajNumberKernel);
RILL_CUDA_KERNEL(target_return_4, TargetReturnKernel<float>);
RILL_CUDA_KERNEL(target_return_8, TargetReturnKernel<double>);
RILL_CUDA_KERNEL(end_of_life, EndOfLifeKernel);

}  // namespace rill::transforms_internal
