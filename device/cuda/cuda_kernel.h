// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_CUDA_KERNEL_H_
#define RILL_DEVICE_CUDA_CUDA_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "rill/device/cuda/kernel_registry.h"
#include "rill/device/kernels/kernel.h"

// For .cu files: makes a kernel (device/kernels/kernel.h) one that
// LaunchKernel can run on CUDA devices. `name` is any name of a variable; the
// type follows.
#define RILL_CUDA_KERNEL(name, ...)                         \
  [[maybe_unused]] static const bool name##_is_registered = \
      ::rill::cuda_internal::RegisterCudaKernel(            \
          (__VA_ARGS__::kName),                             \
          ::rill::cuda_internal::LaunchCudaKernel<__VA_ARGS__>)

namespace rill::cuda_internal {

struct CudaThread : KernelThread {
  // On the host for the compiler alone, which takes Run for both.
  __host__ __device__ static void AtomicMax(int64_t* at, int64_t value) {
#ifdef __CUDA_ARCH__
    atomicMax(reinterpret_cast<long long*>(at), static_cast<long long>(value));
#else
    (void)at, (void)value;
#endif
  }
  __host__ __device__ static void AtomicAdd(int64_t* at, int64_t value) {
#ifdef __CUDA_ARCH__
    atomicAdd(reinterpret_cast<unsigned long long*>(at),
              static_cast<unsigned long long>(value));
#else
    (void)at, (void)value;
#endif
  }
};

template <typename Kernel>
__global__ void RunCudaKernel(const __grid_constant__ Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  typename Kernel::Local local;
  const CudaThread thread = {{blockIdx.x, gridDim.x,
                              static_cast<int>(threadIdx.x),
                              static_cast<int>(blockDim.x)}};
  const int64_t num_phases = kernel.num_phases();
  for (int64_t phase = 0; phase < num_phases; ++phase) {
    if (phase > 0) __syncthreads();
    kernel.Run(phase, thread, shared, local);
  }
}

template <typename Kernel>
int LaunchCudaKernel(const void* kernel, int64_t blocks, int threads,
                     void* stream) {
  RunCudaKernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
                  0, static_cast<cudaStream_t>(stream)>>>(
      *static_cast<const Kernel*>(kernel));
  return cudaGetLastError();
}

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_CUDA_KERNEL_H_
