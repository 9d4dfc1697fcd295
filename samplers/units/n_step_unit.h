// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_N_STEP_UNIT_H_
#define RILL_SAMPLERS_UNITS_N_STEP_UNIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/unit.h"

namespace rill {

struct NStepUnitOptions {
  // n, in [1, Sampler::kMaxBatchSize].
  int64_t steps = 1;
};

// Rows with the n - 1 steps that follow each: what n-step returns are summed
// over. Batch sizes count rows, every live row is an anchor, and the draws are
// those of transitions (same seed, same rows): plan.rows is empty.
//
// The window of a draw is its row and the next n - 1 of its trajectory
// (trajectories/trajectory_index.h). It is shorter where the trajectory ends,
// and at the newest stored row of one that goes on.
//   plan.context[0]: the window without the draw's own row, oldest first: 0 to
//     n - 1 rows a draw.
//   plan.context[1]: the last row of each window, which is the draw's own where
//     the window is that alone: one row a draw, segments 0 .. B - 1.
// Neither has a mask.
//
// INVALID_ARGUMENT where `steps` is out of range.
//
// Cost: a draw O(log lanes + log pieces + n); events as the index.
//
// Example (NStepUnitTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> unit,
//                         MakeNStepUnit({.steps = 3}));
absl::StatusOr<std::unique_ptr<Unit>> MakeNStepUnit(
    const NStepUnitOptions& options);

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_N_STEP_UNIT_H_
