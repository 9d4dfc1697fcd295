// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_TRAJECTORY_WATCH_H_
#define RILL_REPLAY_ROWS_TRAJECTORY_WATCH_H_

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/replay/stored_trajectory.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill::replay_internal {

// Goes through the trajectories that a storage has, while it is written to:
// registered with the storage, List, then Find for each.
//
// Thread-safety: thread-safe.
// Cost: OnAttach and List O(rows) and O(trajectories); 16 bytes a trajectory
//   beside the index (trajectory_index.h). To be removed from the storage when
//   done: each write costs what it costs the index.
class TrajectoryWatch final : public WriteObserver {
 public:
  TrajectoryWatch() : index_({}) {}

  // The newest row of each trajectory, lane after lane, in the order of their
  // first rows. Find knows those of the last List.
  std::vector<Slot> List();
  // The trajectory of a row from List, all but its rows. False where the row
  // was overwritten since, or belongs to a trajectory that is done (a write in
  // place has joined the two).
  bool Find(Slot newest, StoredTrajectory* trajectory);
  // True if an append has retired none of its rows since. Else what was read of
  // them may be of other steps, and Find tells what is left. This is notified
  // of a write after DrawnRows, which lets readers go on (write_counter.h), but
  // before its bytes change.
  bool IsStillThere() const;
  // That trajectory comes no more.
  void Finish(const StoredTrajectory& trajectory);

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override;
  void OnRetire(const WriteEvent& event) override;
  void OnWrite(const WriteEvent& event) override;
  void OnClear() override;

 private:
  mutable absl::Mutex mutex_;
  TrajectoryIndex index_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Slot> listed_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Slot> found_ ABSL_GUARDED_BY(mutex_);  // By Find.
  bool is_there_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_TRAJECTORY_WATCH_H_
