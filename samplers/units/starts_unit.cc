// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/starts_unit.h"

#include "rill/base/status_macros.h"

namespace rill::samplers_internal {

absl::Status CheckTrajectories(const TrajectoryIndex& index,
                               int64_t num_anchors, int64_t want_rows,
                               absl::string_view also,
                               absl::string_view advice) {
  if (num_anchors > 0) return absl::OkStatus();
  if (index.num_rows() == 0) {
    return FailedPrecondition(
        "live rows: got 0, want >= 1; write more rows first");
  }
  // Looks at all trajectories, for the message only.
  const auto [shortest, longest] = index.RangeOfRows();
  return FailedPrecondition("trajectories: got ", index.num_trajectories(),
                            " of ", shortest, " to ", longest,
                            " rows, want one of ", want_rows, " or more", also,
                            "; ", advice);
}

}  // namespace rill::samplers_internal
