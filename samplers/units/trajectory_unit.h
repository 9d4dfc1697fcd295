// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_TRAJECTORY_UNIT_H_
#define RILL_SAMPLERS_UNITS_TRAJECTORY_UNIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/unit.h"

namespace rill {

struct TrajectoryUnitOptions {
  // Shorter ones are never drawn. >= 1.
  int64_t min_rows = 1;
  // The first rows of longer ones are taken. In [min_rows, kMaxBatchSize].
  int64_t max_rows = Sampler::kMaxBatchSize;
  // Only episodes from their first row to their last: the beginning is stored
  // (TrajectoryIndex::Trajectory::is_cut) and the last row has the end flag.
  bool only_complete = false;
};

// Whole trajectories (trajectories/trajectory_index.h tells what that is), all
// live rows in step order. Batch sizes count trajectories: a batch has as many
// picks, and plan.segments tell whose each row is. The anchors are the
// trajectories' first live rows; a uniform selector draws each with the same
// probability.
//
// INVALID_ARGUMENT where an option is out of range, naming it. The same from
// Plan where the batch might have more than kMaxBatchSize rows. Plan counts as
// many of the longest that can be drawn as it has picks.
//
// Cost: a pick O(1), its rows O(log pieces + rows); events as the index.
//
// Example (TrajectoryUnitTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> episodes,
//                         MakeTrajectoryUnit({.only_complete = true}));
absl::StatusOr<std::unique_ptr<Unit>> MakeTrajectoryUnit(
    const TrajectoryUnitOptions& options = {});

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_TRAJECTORY_UNIT_H_
