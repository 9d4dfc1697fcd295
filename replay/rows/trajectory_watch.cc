// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rows/trajectory_watch.h"

#include <limits>
#include <optional>

namespace rill::replay_internal {

std::vector<Slot> TrajectoryWatch::List() {
  absl::MutexLock lock(&mutex_);
  std::vector<Slot> newest;
  listed_.clear();
  std::vector<TrajectoryIndex::Piece> pieces;
  absl::flat_hash_set<TrajectoryIndex::Handle> seen;
  for (int64_t lane = 0; lane < index_.num_lanes(); ++lane) {
    pieces.clear();
    index_.AppendLane(lane, std::numeric_limits<int64_t>::max(), &pieces);
    for (const TrajectoryIndex::Piece& piece : pieces) {
      const TrajectoryIndex::Handle handle = piece.place.trajectory;
      // A trajectory may lie in several pieces; the first one gives its place
      // in the order.
      if (!seen.insert(handle).second) continue;
      newest.push_back(index_.At(handle, index_.Get(handle).rows - 1));
    }
  }
  listed_.insert(newest.begin(), newest.end());
  return newest;
}

bool TrajectoryWatch::Find(Slot newest, StoredTrajectory* trajectory) {
  absl::MutexLock lock(&mutex_);
  if (!listed_.contains(newest)) return false;
  const std::optional<TrajectoryIndex::Place> place = index_.Find(newest);
  if (!place.has_value()) return false;
  const TrajectoryIndex::Trajectory found = index_.Get(place->trajectory);
  trajectory->lane = found.lane;
  trajectory->id = found.id;
  trajectory->is_closed = found.is_closed;
  trajectory->is_cut = found.is_cut;
  trajectory->slots.clear();
  index_.AppendSlots(place->trajectory, 0, found.rows, &trajectory->slots);
  found_.clear();
  found_.insert(trajectory->slots.begin(), trajectory->slots.end());
  is_there_ = true;
  return true;
}

bool TrajectoryWatch::IsStillThere() const {
  absl::MutexLock lock(&mutex_);
  return is_there_;
}

void TrajectoryWatch::Finish(const StoredTrajectory& trajectory) {
  absl::MutexLock lock(&mutex_);
  for (const Slot slot : trajectory.slots) listed_.erase(slot);
}

void TrajectoryWatch::OnAttach(const Lanes& lanes,
                               absl::Span<const Cursor> cursors) {
  absl::MutexLock lock(&mutex_);
  listed_.clear();
  is_there_ = false;
  index_.OnAttach(lanes, cursors);
}

void TrajectoryWatch::OnRetire(const WriteEvent& event) {
  absl::MutexLock lock(&mutex_);
  index_.OnRetire(event);
  if (!event.is_append || listed_.empty()) return;
  for (const SlotRange& range : event.retired) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      listed_.erase(slot);
      // Rows that are being read are about to change.
      if (found_.contains(slot)) is_there_ = false;
    }
  }
}

void TrajectoryWatch::OnWrite(const WriteEvent& event) {
  absl::MutexLock lock(&mutex_);
  index_.OnWrite(event);
}

void TrajectoryWatch::OnClear() {
  absl::MutexLock lock(&mutex_);
  listed_.clear();
  is_there_ = false;
  index_.OnClear();
}

}  // namespace rill::replay_internal
