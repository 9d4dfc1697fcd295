// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ROW_STEPS_H_
#define RILL_TRANSFORMS_ROWS_ROW_STEPS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/transforms/rows/row_map.h"

namespace rill {

// A RowMap that is one step, done by the kernels of the host.
//
// Leaves: kCast takes dtypes with arithmetic; kClip and kSign those but bool;
//   kScaleThenShift, kShiftThenDivide and kIsPositive float32 and float64.
// INVALID_ARGUMENT where scale or loc is not finite or a scale is 0, as
// float32, or their lengths differ and none is 1. So too where low > high or
// one is NaN (they may be infinite), or a crop starts before 0, is empty or
// ends past 2^63. MapSpec refuses integers of which none lies in [low, high].
// Thread-safety: immutable.
absl::StatusOr<std::shared_ptr<const RowMap>> MakeRowStep(const RowStep& step);

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_ROW_STEPS_H_
