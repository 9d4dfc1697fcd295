// SPDX-License-Identifier: Apache-2.0

#include "scale_kernels.h"

#include <cstdint>

namespace rover {
namespace {

__global__ void ScaleKernel(float* x, int64_t size, float factor) {
  const int64_t i =
      static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) x[i] *= factor;
}

}  // namespace

int Scale(float* x, int64_t size, float factor) {
  constexpr int kThreads = 256;
  ScaleKernel<<<static_cast<unsigned>((size + kThreads - 1) / kThreads),
                kThreads>>>(x, size, factor);
  return cudaDeviceSynchronize();
}

}  // namespace rover
