// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_IMAGE_KERNELS_H_
#define RILL_TRANSFORMS_IMAGES_IMAGE_KERNELS_H_

#include <cstdint>

#include "rill/transforms/images/axis_weights.h"

namespace rill::transforms_internal {

// Kernels for the widest vectors of the processor, with the same bits on every
// one: products and sums are rounded one by one.
// Thread-safety: thread-safe.

// Pixels of three bytes to a plane of each of the three.
void SplitRgb(const uint8_t* in, int64_t pixels, uint8_t* red, uint8_t* green,
              uint8_t* blue);

// 0.2989 red + 0.587 green + 0.114 blue in float32; of bytes cut to a byte.
void GrayOfRgb(const float* red, const float* green, const float* blue,
               int64_t count, float* gray);
void GrayOfRgb(const uint8_t* red, const uint8_t* green, const uint8_t* blue,
               int64_t count, uint8_t* gray);

// The larger of each two; a NaN stays. `out` may be `a` or `b`.
void MaxOfTwo(const float* a, const float* b, int64_t count, float* out);
void MaxOfTwo(const uint8_t* a, const uint8_t* b, int64_t count, uint8_t* out);

// Floats that ResizePlane needs as `scratch`.
int64_t ResizeScratchSize(const AxisView& columns);
// A plane of rows.from x columns.from to one of rows.to x columns.to. Computes
// in float32, first along the rows' axis; bytes are rounded half to even.
void ResizePlane(const float* in, const AxisView& rows, const AxisView& columns,
                 float* scratch, float* out);
void ResizePlane(const uint8_t* in, const AxisView& rows,
                 const AxisView& columns, float* scratch, uint8_t* out);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_IMAGES_IMAGE_KERNELS_H_
