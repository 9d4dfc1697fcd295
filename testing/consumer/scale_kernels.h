// SPDX-License-Identifier: Apache-2.0
#ifndef ROVER_SCALE_KERNELS_H_
#define ROVER_SCALE_KERNELS_H_

#include <cstdint>

namespace rover {

// Multiplies x[0, size), which the device can reach, by `factor` and waits.
// Returns a cudaError_t.
int Scale(float* x, int64_t size, float factor);

}  // namespace rover

#endif  // ROVER_SCALE_KERNELS_H_
