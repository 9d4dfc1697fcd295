// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_TRAJECTORY_WALK_H_
#define RILL_REPLAY_ROWS_TRAJECTORY_WALK_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/rows/trajectory_watch.h"
#include "rill/replay/stored_trajectory.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"

namespace rill::replay_internal {

// A walk over the trajectories that a storage holds when it begins, while it is
// written to: lane after lane, oldest first. A trajectory that is overwritten
// or cleared meanwhile is left out; one that loses steps or grows is given as
// it is when it is its turn.
//
// Thread-safety: thread-compatible. It has no lock of its own: rows are read in
//   a hold of the drawn_rows, so that writes of this buffer wait for the read.
// Cost: that of TrajectoryWatch, and of reading.
class TrajectoryWalk {
 public:
  // All outlive the walk. FAILED_PRECONDITION where rows do not tell
  // trajectories apart (EventKeys); errors of Storage::AddObserver.
  static absl::StatusOr<std::unique_ptr<TrajectoryWalk>> Begin(
      const TrajectoryFilter* filter, Storage* storage, DrawnRows* drawn_rows);
  ~TrajectoryWalk() { storage_->RemoveObserver(&watch_); }
  TrajectoryWalk(const TrajectoryWalk&) = delete;
  TrajectoryWalk& operator=(const TrajectoryWalk&) = delete;

  // The next trajectory that the filter wants, with its rows; false behind the
  // last. NOT_FOUND where a key of the filter is not stored.
  absl::StatusOr<bool> Next(StoredTrajectory* trajectory);

 private:
  // The outcome of reading one.
  enum class Found { kRead, kUnwanted, kChanged };

  TrajectoryWalk(const TrajectoryFilter* filter, Storage* storage,
                 DrawnRows* drawn_rows)
      : filter_(*filter), storage_(storage), drawn_rows_(drawn_rows) {}

  absl::StatusOr<Found> Read(Slot newest, StoredTrajectory* trajectory);

  const TrajectoryFilter& filter_;
  Storage* const storage_;
  DrawnRows* const drawn_rows_;
  TrajectoryWatch watch_;
  std::vector<Slot> newest_;  // Of each trajectory.
  size_t next_ = 0;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_TRAJECTORY_WALK_H_
