// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_SLICE_UNIT_H_
#define RILL_SAMPLERS_UNITS_SLICE_UNIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/unit.h"
#include "rill/samplers/units/row_windows.h"

namespace rill {

// How a start is picked where the selector leaves it to the unit (a uniform
// one). N starts are rows that can be the first of a slice.
enum class SliceStarts {
  // A trajectory uniformly, then one of its starts uniformly, as TorchRL does:
  // a row of a short trajectory is drawn more often than one of a long one.
  kTrajectories,
  // Every start with the same probability.
  kRows,
  // The first row of a trajectory, uniformly over those whose beginning is
  // stored (TrajectoryIndex::Trajectory::is_cut).
  kEpisodeStarts,
  // The trajectory is the anchor, by its first live row. The start is drawn
  // from its starts, each with the same probability, when the pick is made into
  // a slice. So a selector without replacement takes one slice of each
  // trajectory an epoch. Trajectories as with kTrajectories.
  kOnePerTrajectory,
  // The younger of two that are drawn as with kRows, age counted in steps of
  // its lane. The r-th (from 0) of N starts, oldest first, has the probability
  // (2 r + 1) / N^2. Two thirds of the mean age; the newest is drawn twice as
  // often as with kRows.
  kRecent,
};

struct SliceUnitOptions {
  // T, the rows of a slice, >= 1; or how many slices a batch of `batch_size`
  // rows has, >= 1, so that T = batch_size / num_slices. One of the two is 0.
  int64_t length = 0;
  int64_t num_slices = 0;
  int64_t batch_size = 0;  // With num_slices only: a multiple of it.
  // Trajectories of fewer rows are never drawn. Else such a one is a slice as
  // it is, and the batch gets smaller.
  bool is_strict = true;
  // Slices with fewer rows repeat their last one up to T; the plan's mask tells
  // which are real. Needs is_strict = false or a span.
  bool is_padded = false;
  // A slice may begin up to span_left rows before its trajectory, and end up to
  // span_right rows behind it, and lacks those rows; both in [0, length). It
  // always has at least one row. Not with kEpisodeStarts, kOnePerTrajectory.
  int64_t span_left = 0;
  int64_t span_right = 0;
  SliceStarts starts = SliceStarts::kTrajectories;
  // Rows beside each slice: n-step returns and frame stacks over its rows.
  RowWindows windows = {};
};

// Slices: T consecutive rows of one trajectory (trajectories/
// trajectory_index.h tells what that is), the pick's own row first (but for
// kOnePerTrajectory). Rows of other producers in between, and where the ring
// wraps, do not matter. Batch sizes count rows: a batch of B rows takes B / T
// anchors.
//
// The anchors are the rows that can be first. With span_left > 0 the slices
// that begin before a trajectory have its first row for their anchor. The
// number of rows that such a slice lacks is drawn uniformly in [0, span_left].
//
// INVALID_ARGUMENT where the options contradict each other, naming them.
//
// Cost: a start O(1) with kTrajectories and kEpisodeStarts, else O(log
//   trajectories); a slice O(log pieces + T + rows beside it). Events cost as
//   the index; anchors are reported only where a listener is set.
//
// Example (SliceUnitTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> slices,
//                         MakeSliceUnit({.length = 4}));
absl::StatusOr<std::unique_ptr<Unit>> MakeSliceUnit(
    const SliceUnitOptions& options);

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_SLICE_UNIT_H_
