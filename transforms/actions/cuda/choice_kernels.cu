// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/cuda_kernel.h"
#include "rill/transforms/actions/choice_kernels.h"
#include "rill/transforms/env/draw_kernels.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(discretize, DiscretizeKernel);
RILL_CUDA_KERNEL(replace_forbidden, ReplaceForbiddenKernel);
RILL_CUDA_KERNEL(project_choices, ProjectChoicesKernel);
RILL_CUDA_KERNEL(horizons, HorizonKernel);
RILL_CUDA_KERNEL(cut_episodes, CutKernel);

}  // namespace rill::transforms_internal
