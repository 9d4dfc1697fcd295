// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/slice_anchors.h"

#include <algorithm>
#include <optional>

#include "rill/base/state/saved_state.h"
#include "rill/samplers/units/range_differences.h"

namespace rill::samplers_internal {
void SliceAnchors::OnAttach(const Lanes& lanes,
                            absl::Span<const Cursor> cursors) {
  retired_.clear();
  index_.OnAttach(lanes, cursors);
  if (listener_ != nullptr) listener_->OnAnchorsCleared();
}

void SliceAnchors::OnClear() {
  retired_.clear();
  index_.OnClear();
  if (listener_ != nullptr) listener_->OnAnchorsCleared();
}

void SliceAnchors::OnRetire(const WriteEvent& event) {
  // Rows that are written in place stay: a read waits for the write.
  if (!event.is_append) return;
  if (listener_ != nullptr) {
    Evict(event);
    return;
  }
  Settle();
  ReadBlocks(event.retired, event.retired_blocks, &retired_);
}

void SliceAnchors::OnWrite(const WriteEvent& event) {
  // No other append writes rows that are retired.
  if (event.is_append && !retired_.empty() && event.begins_cut.empty()) {
    ReadBlocks(event.written, event.written_blocks, &written_);
    if (written_ == retired_) {
      retired_.clear();
      index_.OnAppend(event, written_);
      return;
    }
  }
  Settle();
  if (listener_ == nullptr) {
    index_.OnWrite(event);
  } else if (event.is_append) {
    index_.OnWrite(event);
    TellOfNewRows(event);
  } else {
    WriteInPlace(event);
  }
}

void SliceAnchors::ReadBlocks(absl::Span<const SlotRange> ranges,
                              absl::Span<const LaneBlock> known,
                              std::vector<LaneBlock>* all) const {
  all->clear();
  LaneBlocks blocks(index_.lanes(), ranges, known);
  for (LaneBlock block; blocks.Next(&block);) all->push_back(block);
}

void SliceAnchors::TellRetired() const {
  for (const LaneBlock& block : retired_) index_.Retire(block);
  retired_.clear();
}

bool SliceAnchors::Contains(Slot slot) const {
  const std::optional<TrajectoryIndex::Place> place = index().Find(slot);
  return place.has_value() &&
         place->offset < trajectories().WeightOf(place->trajectory);
}

absl::Status SliceAnchors::Load(const SavedState& state,
                                const ChangedOptions& changed) {
  Settle();
  // The state says which trajectories are cut. Only a rule that asks for
  // beginnings has other anchors by that.
  if (listener_ == nullptr || !rule_.needs_beginning) {
    return index_.Load(state, changed);
  }
  std::vector<int64_t> lanes;
  for (int64_t lane = 0; lane < index_.num_lanes(); ++lane) {
    lanes.push_back(lane);
  }
  const std::vector<SlotRange> before = AnchorsOfLanes(lanes);
  const absl::Status loaded = index_.Load(state, changed);
  TellOfDifference(before, AnchorsOfLanes(lanes));
  return loaded;
}

void SliceAnchors::CollectAnchors(Handle trajectory, int64_t begin, int64_t end,
                                  std::vector<SlotRange>* ranges) const {
  if (begin < end) index_.AppendRanges(trajectory, begin, end - begin, ranges);
}

// Where a trajectory loses its first n rows, its anchors were rows [0, a) and
// will be rows [n, b).
void SliceAnchors::Evict(const WriteEvent& event) {
  removed_.clear();
  added_.clear();
  for (const Share& share : shares_.Retired(index_, event)) {
    const TrajectoryIndex::Trajectory old = index_.Get(share.trajectory);
    const int64_t n = share.rows;
    const int64_t a = rule_.Count(old.rows, old.is_cut, old.is_closed);
    const int64_t b =
        n + rule_.Count(old.rows - n, /*is_cut=*/true, old.is_closed);
    CollectAnchors(share.trajectory, 0, std::min(a, n), &removed_);
    // Where the rule needs the beginning, anchors that stay rows cease too.
    CollectAnchors(share.trajectory, b, a, &removed_);
    CollectAnchors(share.trajectory, std::max(a, n), b, &added_);
  }
  index_.OnRetire(event);
  Tell();
}

void SliceAnchors::TellOfNewRows(const WriteEvent& event) {
  removed_.clear();
  added_.clear();
  for (const Share& share : shares_.Written(index_, event)) {
    const TrajectoryIndex::Trajectory now = index_.Get(share.trajectory);
    // It was open before.
    const int64_t before =
        rule_.Count(now.rows - share.rows, now.is_cut, /*is_closed=*/false);
    const int64_t after = rule_.Count(now.rows, now.is_cut, now.is_closed);
    CollectAnchors(share.trajectory, before, after, &added_);
  }
  Tell();
}

void SliceAnchors::WriteInPlace(const WriteEvent& event) {
  // Rows that were written are reported as gone and come again, whether they
  // stay anchors or not. So the selector takes them for other rows.
  std::vector<SlotRange> written_before = AnchorsAmong(event.written);
  if (!index_.IsChange(event)) {
    index_.OnWrite(event);
    removed_ = std::move(written_before);
    added_ = removed_;
    Tell();
    return;
  }
  std::vector<int64_t> lanes;
  for (const SlotRange& range : event.written) {
    lanes.push_back(index_.lanes().LaneOf(range.first));
  }
  std::sort(lanes.begin(), lanes.end());
  lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
  std::vector<SlotRange> before;
  Subtract(AnchorsOfLanes(lanes), written_before, &before);
  // Before the index changes; those that others become or cease to be follow.
  if (!written_before.empty()) listener_->OnAnchorsRemoved(written_before);
  index_.OnWrite(event);
  TellOfDifference(before, AnchorsOfLanes(lanes));
}

std::vector<SlotRange> SliceAnchors::AnchorsOfLanes(
    absl::Span<const int64_t> lanes) const {
  std::vector<TrajectoryIndex::Piece> pieces;
  for (const int64_t lane : lanes) {
    index_.AppendLane(lane, index_.lanes().capacity, &pieces);
  }
  std::vector<SlotRange> ranges;
  for (const TrajectoryIndex::Piece& piece : pieces) {
    // Anchors are a trajectory's first rows, so a piece has those before that
    // offset.
    const int64_t anchors = trajectories().WeightOf(piece.place.trajectory);
    const int64_t count =
        std::min(piece.slots.count, anchors - piece.place.offset);
    if (count > 0) ranges.push_back({piece.slots.first, count});
  }
  SortBySlot(&ranges);
  return ranges;
}

std::vector<SlotRange> SliceAnchors::AnchorsAmong(
    absl::Span<const SlotRange> slots) const {
  std::vector<SlotRange> ranges;
  ForEachSlot(slots, [&](Slot slot) {
    if (Contains(slot)) ranges.push_back({slot, 1});
  });
  SortBySlot(&ranges);
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  return ranges;
}

void SliceAnchors::TellOfDifference(const std::vector<SlotRange>& before,
                                    const std::vector<SlotRange>& after) {
  removed_.clear();
  added_.clear();
  Subtract(before, after, &removed_);
  Subtract(after, before, &added_);
  Tell();
}

void SliceAnchors::Tell() {
  if (!removed_.empty()) listener_->OnAnchorsRemoved(removed_);
  if (!added_.empty()) listener_->OnAnchorsAdded(added_);
}

}  // namespace rill::samplers_internal
