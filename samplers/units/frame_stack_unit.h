// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_FRAME_STACK_UNIT_H_
#define RILL_SAMPLERS_UNITS_FRAME_STACK_UNIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/unit.h"

namespace rill {

struct FrameStackUnitOptions {
  // N, with the row's own frame, in [1, Sampler::kMaxBatchSize].
  int64_t frames = 1;
};

// Rows with the N - 1 rows before each: storages keep single frames, and
// batches have stacks of N. Batch sizes count rows, every live row is an
// anchor, and the draws are those of transitions (same seed, same rows):
// plan.rows is empty.
//   plan.context[0]: the N - 1 rows before the draw's own in its trajectory
//     (trajectories/trajectory_index.h), oldest first. In the place of rows
//     that are not there (before the trajectory's beginning, or evicted) stands
//     its first live row, with a 0 in the mask; what such a frame holds (the
//     first one again, zeros) is the transform's to say. The mask is empty
//     where all rows are there.
//
// INVALID_ARGUMENT where `frames` is out of range, and of Plan where batch size
// times N is above Sampler::kMaxBatchSize.
//
// Cost: a draw O(log lanes + log pieces + N); events as the index.
//
// Example (FrameStackUnitTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> unit,
//                         MakeFrameStackUnit({.frames = 4}));
absl::StatusOr<std::unique_ptr<Unit>> MakeFrameStackUnit(
    const FrameStackUnitOptions& options);

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_FRAME_STACK_UNIT_H_
