// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ROW_STEP_H_
#define RILL_TRANSFORMS_ROWS_ROW_STEP_H_

#include <cstdint>
#include <vector>

#include "rill/tensors/dtype.h"

namespace rill {

// One step of what becomes of a row, as data: for the kernel of the host
// (row_steps.h), for a gather that does it on the way, for kernels of devices.
//
// Numerics: numbers of the step are rounded to float32 for float32 elements.
// x * scale + loc is then rounded once, as std::fma does. (x - loc) / scale is
// computed in double and then rounded. Results are the same on every machine.
struct RowStep {
  enum class Kind : uint8_t {
    kScaleThenShift,   // x * scale + loc
    kShiftThenDivide,  // (x - loc) / scale
    kCast,             // To `dtype`, as Cast does.
    kClip,             // To [low, high]; NaN stays (see MapSpec).
    kSign,             // -1, 0 or 1; NaN stays.
    kIsPositive,       // 1 where x > 0, else 0; float32 to float32.
    kUnitInterval,     // uint8 to float32: x / 255, rounded once.
    kChannelsFirst,    // [..., H, W, C] to [..., C, H, W]
    kCrop,             // Of [..., H, W] rows and columns from (top, left) on.
  };
  Kind kind = Kind::kScaleThenShift;
  DType dtype = DType::kFloat32;
  // One number for all elements, or one for each element of a row.
  std::vector<double> scale = {1};
  std::vector<double> loc = {0};
  double low = 0;
  double high = 0;
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_ROW_STEP_H_
