// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITY_REDUCTION_H_
#define RILL_SAMPLERS_PRIORITY_REDUCTION_H_

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace rill {

// How the priorities of an item's rows become one, for Sampler::
// UpdatePriorities, which takes one a draw.
enum class PriorityReduction {
  kMax,
  kMin,
  kMean,    // Added up in double, in order.
  kMedian,  // The lower of the two in the middle.
};

// reduced[i] = the reduction of row i of `priorities`, [n, T] in row-major
// order. NaN where one of the T is NaN, so that UpdatePriorities refuses it.
// INVALID_ARGUMENT, nothing changed, unless n = reduced.size() divides the
// number of priorities and T >= 1.
//
// Thread-safety: thread-compatible. Cost: O(n T).
//
// Example (PriorityReductionTest.Example runs it):
//   float reduced[2];
//   RILL_RETURN_IF_ERROR(ReducePriorities({1, 2, 6, 4, 4, 5},
//       PriorityReduction::kMax, absl::MakeSpan(reduced)));  // 6, 5
absl::Status ReducePriorities(absl::Span<const float> priorities,
                              PriorityReduction reduction,
                              absl::Span<float> reduced);

}  // namespace rill

#endif  // RILL_SAMPLERS_PRIORITY_REDUCTION_H_
