// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_KERNEL_REGISTRY_H_
#define RILL_DEVICE_CUDA_KERNEL_REGISTRY_H_

#include <cstdint>

namespace rill::cuda_internal {

// The kernels (device/kernels/kernel.h) that were linked in for CUDA, by name.
// Between nvcc and the rest, so without Abseil.

// Launches a copy of `kernel` on the current device and `stream`, a
// cudaStream_t; gives a cudaError_t.
using CudaLaunch = int (*)(const void* kernel, int64_t blocks, int threads,
                           void* stream);

// Before main. True, for a static variable. Thread-safety: thread-safe.
bool RegisterCudaKernel(const char* name, CudaLaunch launch);

// Null: no such kernel was linked in. Thread-safety: thread-safe.
CudaLaunch FindCudaKernel(const char* name);

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_KERNEL_REGISTRY_H_
