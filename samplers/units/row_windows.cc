// SPDX-License-Identifier: Apache-2.0
// Windows compose, because all that a draw needs is one run of its trajectory:
// frames - 1 rows before its rows, the rows, and steps - 1 behind them. Each
// row of the run is in one list and so is read once. Rainbow is a run around
// one row, R2D2 one around a sequence. Only the last rows of the windows are a
// list of their own, as they go straight into the batch.
#include "rill/samplers/units/row_windows.h"

#include <algorithm>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"

namespace rill::samplers_internal {

absl::Status WindowPlanner::Check(absl::string_view caller,
                                  const RowWindows& windows) {
  for (const auto& [name, value] : {std::pair("frames", windows.frames),
                                    std::pair("steps", windows.steps)}) {
    if (value >= 0 && value <= Sampler::kMaxBatchSize) continue;
    return InvalidArgument(caller, ": ", name, ": got ", value, ", want [1, ",
                           Sampler::kMaxBatchSize, "], or 0 for none");
  }
  return absl::OkStatus();
}

PlanLayout WindowPlanner::Extend(PlanLayout layout) const {
  if (windows_.frames > 0) {
    layout.context.push_back({PlanLayout::kFramesBefore, windows_.frames - 1});
  }
  if (windows_.steps > 0) {
    layout.context.push_back({PlanLayout::kStepsBehind, windows_.steps - 1});
    layout.context.push_back({PlanLayout::kWindowEnds, 1});
  }
  return layout;
}

absl::StatusOr<int64_t> WindowPlanner::CheckRows(int64_t anchors,
                                                 int64_t rows_per_draw) const {
  const int64_t most = Sampler::kMaxBatchSize / (rows_per_draw + rows_beside());
  if (windows_.is_empty() || anchors <= most) return anchors;
  return InvalidArgument(
      "batch size: got ", anchors * rows_per_draw, ", want [1, ",
      most * rows_per_draw, "] where a draw has ", rows_per_draw,
      " rows of the batch and up to ", rows_beside(), " beside them");
}

void WindowPlanner::AppendFrames(const TrajectoryIndex& index, const Run& run,
                                 size_t draw,
                                 SamplePlan::Context* before) const {
  const int64_t there = std::min(windows_.frames - 1, run.offset);
  if (const int64_t missing = windows_.frames - 1 - there; missing > 0) {
    // The mask is empty while no row is missing; the first one that is fills it
    // up to here.
    before->mask.resize(before->rows.size(), 1);
    before->rows.resize(before->rows.size() + missing,
                        index.At(run.trajectory, 0));
    before->mask.resize(before->rows.size(), 0);
  }
  index.AppendSlots(run.trajectory, run.offset - there, there, &before->rows);
  before->segments.resize(before->rows.size(), static_cast<int64_t>(draw));
}

void WindowPlanner::AppendSteps(const TrajectoryIndex& index, const Run& run,
                                size_t draw, SamplePlan::Context* behind,
                                SamplePlan::Context* ends) const {
  const int64_t rows = index.Get(run.trajectory).rows;
  const int64_t end = run.offset + run.count;
  index.AppendSlots(run.trajectory, end,
                    std::min(windows_.steps - 1, rows - end), &behind->rows);
  behind->segments.resize(behind->rows.size(), static_cast<int64_t>(draw));

  // The window of row i ends at row min(i + steps, rows) - 1. It moves with i
  // until it meets the trajectory's last row, and stays there.
  const int64_t first = std::min(run.offset + windows_.steps, rows) - 1;
  ends->rows.resize(ends->rows.size() + run.pads_before,
                    run.pads_before > 0 ? index.At(run.trajectory, first) : 0);
  const int64_t moving = std::min(run.count, rows - first);
  index.AppendSlots(run.trajectory, first, moving, &ends->rows);
  const Slot last = ends->rows.back();
  ends->rows.resize(ends->rows.size() + run.count - moving + run.pads_behind,
                    last);
  ends->segments.resize(ends->rows.size(), static_cast<int64_t>(draw));
}

void WindowPlanner::Append(const TrajectoryIndex& index, const Run& run,
                           size_t draw, SamplePlan* plan) const {
  size_t list = 0;
  if (windows_.frames > 0) {
    AppendFrames(index, run, draw, &plan->context[list++]);
  }
  if (windows_.steps > 0) {
    AppendSteps(index, run, draw, &plan->context[list],
                &plan->context[list + 1]);
  }
}

void WindowPlanner::Finish(SamplePlan* plan) const {
  if (windows_.frames == 0) return;
  SamplePlan::Context& before = plan->context[0];
  if (!before.mask.empty()) before.mask.resize(before.rows.size(), 1);
}

}  // namespace rill::samplers_internal
