// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/trajectory_shares.h"

#include "rill/slots/slot.h"

namespace rill::samplers_internal {

absl::Span<const TrajectoryShares::Share> TrajectoryShares::Written(
    const TrajectoryIndex& index, const WriteEvent& event) {
  pieces_.clear();
  for (const SlotRange& range : event.written) {
    index.AppendPieces(range, &pieces_);
  }
  return Collect();
}

absl::Span<const TrajectoryShares::Share> TrajectoryShares::Retired(
    const TrajectoryIndex& index, const WriteEvent& event) {
  // They are the oldest of their lanes, in whatever order they are named.
  pieces_.clear();
  for (size_t i = 0; i < event.retired.size();) {
    const int64_t lane = index.lanes().LaneOf(event.retired[i].first);
    int64_t rows = 0;
    for (; i < event.retired.size() &&
           index.lanes().LaneOf(event.retired[i].first) == lane;
         ++i) {
      rows += event.retired[i].count;
    }
    index.AppendLane(lane, rows, &pieces_);
  }
  return Collect();
}

absl::Span<const TrajectoryShares::Share> TrajectoryShares::Collect() {
  shares_.clear();
  share_of_.clear();
  for (const TrajectoryIndex::Piece& piece : pieces_) {
    // A trajectory may have several pieces, and its rows count together.
    const auto [found, is_new] =
        share_of_.insert({piece.place.trajectory, shares_.size()});
    if (is_new) shares_.push_back({.trajectory = piece.place.trajectory});
    shares_[found->second].rows += piece.slots.count;
  }
  return shares_;
}

}  // namespace rill::samplers_internal
