// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/pixel_kernels.h"

#include "rill/device/cuda/cuda_kernel.h"
#include "rill/transforms/images/max_kernels.h"
#include "rill/transforms/rows/element_kernels.h"

namespace rill::transforms_internal {

RILL_CUDA_KERNEL(gray_u8, GrayKernel<uint8_t>);
RILL_CUDA_KERNEL(gray_f32, GrayKernel<float>);
RILL_CUDA_KERNEL(gray_f64, GrayKernel<double>);
RILL_CUDA_KERNEL(nearest_1, NearestKernel<uint8_t>);
RILL_CUDA_KERNEL(nearest_2, NearestKernel<uint16_t>);
RILL_CUDA_KERNEL(nearest_4, NearestKernel<uint32_t>);
RILL_CUDA_KERNEL(nearest_8, NearestKernel<uint64_t>);
RILL_CUDA_KERNEL(nearest_16, NearestKernel<SixteenBytes>);
RILL_CUDA_KERNEL(linear_u8, LinearKernel<uint8_t>);
RILL_CUDA_KERNEL(linear_f32, LinearKernel<float>);
RILL_CUDA_KERNEL(time_max_u8, TimeMaxKernel<uint8_t>);
RILL_CUDA_KERNEL(time_max_f32, TimeMaxKernel<float>);
RILL_CUDA_KERNEL(time_max_f64, TimeMaxKernel<double>);

}  // namespace rill::transforms_internal
