// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_STEP_ROWS_H_
#define RILL_TRANSFORMS_ROWS_STEP_ROWS_H_

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/steps/device_steps.h"  // IWYU pragma: export

namespace rill::transforms_internal {

// From and to; `to` may be `from` where the map is in place.
using StepPairs = absl::InlinedVector<std::pair<Tensor, Tensor>, 8>;

// Maps leaves of steps on the call's device, those rows that the call names.
// Errors: those of memory and of launches. Cost: as RowwiseTransform; named
// rows are computed with all others, and then copied.
absl::Status MapStepPairs(const RowMap& map, const DeviceSteps::Call& call,
                          const StepPairs& pairs, DeviceWork* memory);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ROWS_STEP_ROWS_H_
