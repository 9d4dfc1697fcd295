// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/line_kernels.h"

#include "rill/device/cuda/cuda_kernel.h"
#include "rill/estimators/standardize_kernel.h"

namespace rill::estimators_internal {

template <typename T>
using GaeKernel = LineKernel<T, GaeLine>;
template <typename T>
using TdLambdaKernel = LineKernel<T, TdLambdaLine>;
template <typename T>
using RewardToGoKernel = LineKernel<T, RewardToGoLine>;
template <typename T>
using VTraceKernel = LineKernel<T, VTraceLine>;
template <typename T>
using NStepKernel = LineKernel<T, NStepLine>;

RILL_CUDA_KERNEL(gae_f32, GaeKernel<float>);
RILL_CUDA_KERNEL(gae_f64, GaeKernel<double>);
RILL_CUDA_KERNEL(td_lambda_f32, TdLambdaKernel<float>);
RILL_CUDA_KERNEL(td_lambda_f64, TdLambdaKernel<double>);
RILL_CUDA_KERNEL(reward_to_go_f32, RewardToGoKernel<float>);
RILL_CUDA_KERNEL(reward_to_go_f64, RewardToGoKernel<double>);
RILL_CUDA_KERNEL(vtrace_f32, VTraceKernel<float>);
RILL_CUDA_KERNEL(vtrace_f64, VTraceKernel<double>);
RILL_CUDA_KERNEL(n_step_f32, NStepKernel<float>);
RILL_CUDA_KERNEL(n_step_f64, NStepKernel<double>);
RILL_CUDA_KERNEL(standardize_f32, StandardizeKernel<float>);
RILL_CUDA_KERNEL(standardize_f64, StandardizeKernel<double>);

}  // namespace rill::estimators_internal
