// SPDX-License-Identifier: Apache-2.0
#include "rill/device/uploads/upload_kernels.h"

#include "rill/device/cuda/cuda_kernel.h"

namespace rill::device_internal {

RILL_CUDA_KERNEL(upload, UploadKernel);

}  // namespace rill::device_internal
