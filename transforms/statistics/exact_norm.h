// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STATISTICS_EXACT_NORM_H_
#define RILL_TRANSFORMS_STATISTICS_EXACT_NORM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill::transforms_internal {

// A leaf [lanes, ...] of a VecNorm with decay 1 on a device, and its state.
struct ExactNormLeaf {
  Tensor from;
  Tensor to;  // May be `from`.
  Tensor before;
  Tensor after = {};  // Not valid: learns nothing.
};

// Learns from the rows of the call's lanes, all or, with `count` of them, those
// that it names, and normalises them: vec_norm.h on the call's stream. Where a
// value is wrong the call's fault is a NormFault, and all statistics stay.
// Errors of launches. Cost: two launches for eight leaves, one where none
// learns.
absl::Status NormaliseExactly(absl::Span<const ExactNormLeaf> leaves,
                              int64_t count, double eps,
                              const DeviceSteps::Call& call);

// ReturnScaling of contiguous rewards, [lanes, 1] float32 or float64, in place.
struct ReturnScalingCall {
  Tensor rewards;
  double gamma = 1;
  double eps = 0;
  bool learns = true;
  Tensor returns;
  Tensor new_returns;
  Tensor sums;
  Tensor new_sums;
};
absl::Status ScaleReturns(const ReturnScalingCall& scaling,
                          const DeviceSteps::Call& call);

// The error of a fault of both, which `name` has.
absl::Status NormError(absl::string_view name, int64_t fault);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STATISTICS_EXACT_NORM_H_
