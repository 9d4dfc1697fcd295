// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_ROW_WINDOWS_H_
#define RILL_SAMPLERS_UNITS_ROW_WINDOWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/slots/plan_layout.h"
#include "rill/slots/sample_plan.h"

namespace rill {

// Rows around those of an item that its arithmetic needs. Frames before a row
// are stacked with its own; the rewards of the steps behind it are summed. Both
// may be asked for at once, over single rows, slices and sequences.
//
// The lists of SamplePlan::context, in this order; "its rows" are those of a
// draw that do not pad:
// - frames > 0: PlanLayout::kFramesBefore, frames - 1 rows a draw: those before
//   its first row in its trajectory (trajectories/trajectory_index.h), oldest
//   first. In the place of rows that are not there (before the trajectory's
//   beginning, or evicted) stands its first live row, with a 0 in the mask. The
//   transform decides what such a frame holds. The mask is empty where all rows
//   are there.
// - steps > 0: PlanLayout::kStepsBehind, at most steps - 1 rows a draw: those
//   behind its last row, oldest first, fewer where the trajectory ends, or its
//   newest row is stored. No mask.
// - steps > 0: PlanLayout::kWindowEnds, one row for each row of the batch: the
//   last of the `steps` rows of its trajectory that begin with it, or the
//   trajectory's last. A row that pads has that of the row which it repeats. No
//   mask.
// So each row of a trajectory is in the batch or in one of the first two lists,
// once.
struct RowWindows {
  // N, with the row's own frame, in [1, Sampler::kMaxBatchSize]; 0: no list.
  int64_t frames = 0;
  // n, with the row's own step, in [1, Sampler::kMaxBatchSize]; 0: no lists.
  int64_t steps = 0;

  bool is_empty() const { return frames == 0 && steps == 0; }
  friend bool operator==(const RowWindows&, const RowWindows&) = default;
};

namespace samplers_internal {

// Plans windows, for the units that have them.
// Thread-safety: immutable.
class WindowPlanner {
 public:
  // The rows of a draw, all of one trajectory: `pads_before` times the first,
  // rows [offset, offset + count), `pads_behind` times the last. count >= 1.
  struct Run {
    TrajectoryIndex::Handle trajectory = 0;
    int64_t offset = 0;
    int64_t count = 0;
    int64_t pads_before = 0;
    int64_t pads_behind = 0;
  };

  explicit WindowPlanner(const RowWindows& windows) : windows_(windows) {}

  // INVALID_ARGUMENT, beginning with `caller`, where a number is out of range.
  static absl::Status Check(absl::string_view caller,
                            const RowWindows& windows);

  // `layout` with the lists of the windows.
  PlanLayout Extend(PlanLayout layout) const;
  // Rows of the first two lists, for a draw; at most 2^25.
  int64_t rows_beside() const {
    return (windows_.frames > 0 ? windows_.frames - 1 : 0) +
           (windows_.steps > 0 ? windows_.steps - 1 : 0);
  }
  // The anchors of a batch, of `rows_per_draw` rows each: INVALID_ARGUMENT
  // where they have more than Sampler::kMaxBatchSize rows with those beside.
  absl::StatusOr<int64_t> CheckRows(int64_t anchors,
                                    int64_t rows_per_draw) const;

  // Appends the rows beside those of a draw.
  void Append(const TrajectoryIndex& index, const Run& run, size_t draw,
              SamplePlan* plan) const;
  // Called once, behind the last draw.
  void Finish(SamplePlan* plan) const;

 private:
  void AppendFrames(const TrajectoryIndex& index, const Run& run, size_t draw,
                    SamplePlan::Context* before) const;
  void AppendSteps(const TrajectoryIndex& index, const Run& run, size_t draw,
                   SamplePlan::Context* behind,
                   SamplePlan::Context* ends) const;

  const RowWindows windows_;
};

}  // namespace samplers_internal
}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_ROW_WINDOWS_H_
