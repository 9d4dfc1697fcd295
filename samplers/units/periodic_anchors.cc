// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/periodic_anchors.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/units/range_differences.h"

namespace rill::samplers_internal {
namespace {

// Sorted, without overlaps.
std::vector<SlotRange> Merged(absl::Span<const SlotRange> ranges) {
  std::vector<SlotRange> sorted(ranges.begin(), ranges.end());
  SortBySlot(&sorted);
  std::vector<SlotRange> merged;
  for (const SlotRange& range : sorted) {
    const Slot end =
        merged.empty() ? 0 : merged.back().first + merged.back().count;
    if (merged.empty() || end <= range.first) {
      merged.push_back(range);
    } else if (end < range.first + range.count) {
      merged.back().count += range.first + range.count - end;
    }
  }
  return merged;
}

}  // namespace

// --- The rule ----------------------------------------------------------------

int64_t PeriodicAnchors::PhaseOf(Handle trajectory) const {
  const auto found = phases_.find(trajectory);
  return found == phases_.end() ? 0 : found->second;
}

int64_t PeriodicAnchors::NextOffset(int64_t offset, int64_t phase) const {
  const int64_t behind = (phase + offset) % rule_.period;
  return behind == 0 ? offset : offset + rule_.period - behind;
}

int64_t PeriodicAnchors::Count(int64_t rows, int64_t phase) const {
  // Anchors are first, first + period, ... below end.
  const int64_t first = NextOffset(rule_.before, phase);
  const int64_t end = rows - rule_.after;
  return end <= first ? 0 : (end - 1 - first) / rule_.period + 1;
}

void PeriodicAnchors::Set(Handle trajectory, int64_t rows, int64_t phase) {
  // Most phases are 0 and take no memory.
  if (rows > 0 && phase > 0) {
    phases_[trajectory] = phase;
  } else {
    phases_.erase(trajectory);
  }
  set_.Set(trajectory, Count(rows, phase));
}

Slot PeriodicAnchors::At(int64_t n) const {
  const WeighedSet::Hit hit = set_.Find(n);
  return index_.At(hit.member, NextOffset(rule_.before, PhaseOf(hit.member)) +
                                   hit.rest * rule_.period);
}

bool PeriodicAnchors::Contains(Slot slot) const {
  const std::optional<TrajectoryIndex::Place> place = index_.Find(slot);
  if (!place.has_value()) return false;
  const int64_t rows = index_.Get(place->trajectory).rows;
  return place->offset >= rule_.before && place->offset < rows - rule_.after &&
         (PhaseOf(place->trajectory) + place->offset) % rule_.period == 0;
}

int64_t PeriodicAnchors::PhaseOfNew(
    const TrajectoryIndex::Trajectory& trajectory) const {
  if (!trajectory.is_cut) return 0;
  const auto tail = tails_.find(trajectory.lane);
  const bool goes_on = tail != tails_.end() && tail->second.id == trajectory.id;
  return goes_on ? tail->second.phase : 0;
}

// --- Events ------------------------------------------------------------------

void PeriodicAnchors::OnAttach(const Lanes& lanes,
                               absl::Span<const Cursor> cursors) {
  index_.OnAttach(lanes, cursors);
  set_.Clear();
  phases_.clear();
  tails_.clear();
  if (listener_ != nullptr) listener_->OnAnchorsCleared();
}

void PeriodicAnchors::OnClear() {
  index_.OnClear();
  set_.Clear();
  phases_.clear();
  tails_.clear();
  if (listener_ != nullptr) listener_->OnAnchorsCleared();
}

void PeriodicAnchors::OnRetire(const WriteEvent& event) {
  // Rows that are written in place stay: a read waits for the write.
  if (event.is_append) Evict(event);
}

void PeriodicAnchors::OnWrite(const WriteEvent& event) {
  if (!event.is_append) {
    WriteInPlace(event);
    return;
  }
  index_.OnWrite(event);
  removed_.clear();
  added_.clear();
  for (const Share& share : shares_.Written(index_, event)) {
    const TrajectoryIndex::Trajectory now = index_.Get(share.trajectory);
    // All its rows are of this write: it is new, or goes on with one whose rows
    // are all gone (tails_). Where a batch dropped rows its count is not known.
    const bool may_go_on = now.rows == share.rows && event.begins_cut.empty();
    Set(share.trajectory, now.rows,
        may_go_on ? PhaseOfNew(now) : PhaseOf(share.trajectory));
    // A row becomes an anchor when `after` rows follow, so new anchors lie that
    // far before the new rows.
    AppendAnchors(share.trajectory, now.rows - share.rows - rule_.after,
                  now.rows - rule_.after, &added_);
  }
  for (const SlotRange& range : event.written) {
    // Another row is the lane's newest now.
    tails_.erase(index_.lanes().LaneOf(range.first));
  }
  Tell();
}

void PeriodicAnchors::AppendAnchors(Handle trajectory, int64_t begin,
                                    int64_t end,
                                    std::vector<SlotRange>* ranges) const {
  if (listener_ == nullptr) return;
  int64_t offset =
      NextOffset(std::max(begin, rule_.before), PhaseOf(trajectory));
  if (rule_.period == 1 && offset < end) {
    index_.AppendRanges(trajectory, offset, end - offset, ranges);
    return;
  }
  for (; offset < end; offset += rule_.period) {
    ranges->push_back({.first = index_.At(trajectory, offset), .count = 1});
  }
}

void PeriodicAnchors::Evict(const WriteEvent& event) {
  removed_.clear();
  added_.clear();
  for (const Share& share : shares_.Retired(index_, event)) {
    const TrajectoryIndex::Trajectory now = index_.Get(share.trajectory);
    // Anchors that go are the rows themselves and those behind that lose the
    // `before` rows they need.
    AppendAnchors(share.trajectory, 0,
                  std::min(share.rows + rule_.before, now.rows - rule_.after),
                  &removed_);
    const int64_t phase =
        // Eviction moves the first row, not the count.
        (PhaseOf(share.trajectory) + share.rows) % rule_.period;
    if (share.rows == now.rows && !now.is_closed &&
        index_.AgeOf(index_.At(share.trajectory, now.rows - 1)) == 0) {
      // Its newest row was the lane's newest too: a row that comes next may
      // continue the count.
      tails_[now.lane] = {.id = now.id, .phase = phase};
    }
    Set(share.trajectory, now.rows - share.rows, phase);
  }
  index_.OnRetire(event);
  Tell();
}

void PeriodicAnchors::WriteInPlace(const WriteEvent& event) {
  const std::vector<SlotRange> written = Merged(event.written);
  // Trajectories stay: only rows that are anchors are reported, as gone and
  // come again.
  if (!index_.IsChange(event)) {
    index_.OnWrite(event);
    std::vector<SlotRange> anchors;
    ForEachSlot(written, [&](Slot slot) {
      if (Contains(slot)) anchors.push_back({.first = slot, .count = 1});
    });
    TellOfDifference(anchors, anchors, written);
    return;
  }
  std::vector<int64_t> lanes;
  for (const SlotRange& range : written) {
    const int64_t lane = index_.lanes().LaneOf(range.first);
    if (lanes.empty() || lanes.back() != lane) lanes.push_back(lane);
  }
  std::vector<Handle> trajectories = TrajectoriesOf(lanes);
  const std::vector<SlotRange> before = AnchorsOf(trajectories);
  // The write may free handles and make others, so counts are kept by slot.
  absl::flat_hash_map<Slot, int64_t> phases;  // By the first row.
  for (const Handle trajectory : trajectories) {
    const int64_t phase = PhaseOf(trajectory);
    if (phase > 0) phases[index_.At(trajectory, 0)] = phase;
    Set(trajectory, /*rows=*/0, /*phase=*/0);
  }
  index_.OnWrite(event);
  trajectories = TrajectoriesOf(lanes);
  for (const Handle trajectory : trajectories) {
    const TrajectoryIndex::Trajectory now = index_.Get(trajectory);
    const auto phase = phases.find(index_.At(trajectory, 0));
    Set(trajectory, now.rows,
        // A trajectory whose beginning is there counts from it.
        now.is_cut && phase != phases.end() ? phase->second : 0);
  }
  TellOfDifference(before, AnchorsOf(trajectories), written);
}

std::vector<PeriodicAnchors::Handle> PeriodicAnchors::TrajectoriesOf(
    absl::Span<const int64_t> lanes) const {
  std::vector<TrajectoryIndex::Piece> pieces;
  for (const int64_t lane : lanes) {
    index_.AppendLane(lane, index_.lanes().capacity, &pieces);
  }
  std::vector<Handle> trajectories;
  for (const TrajectoryIndex::Piece& piece : pieces) {
    if (piece.place.offset == 0) trajectories.push_back(piece.place.trajectory);
  }
  return trajectories;
}

std::vector<SlotRange> PeriodicAnchors::AnchorsOf(
    absl::Span<const Handle> trajectories) const {
  std::vector<SlotRange> ranges;
  for (const Handle trajectory : trajectories) {
    AppendAnchors(trajectory, 0, index_.Get(trajectory).rows - rule_.after,
                  &ranges);
  }
  SortBySlot(&ranges);
  return ranges;
}

void PeriodicAnchors::TellOfDifference(absl::Span<const SlotRange> before,
                                       absl::Span<const SlotRange> after,
                                       absl::Span<const SlotRange> written) {
  // Anchors before and after that were not written stay what they are and are
  // not reported.
  std::vector<SlotRange> stay_before;
  std::vector<SlotRange> stay_after;
  Subtract(before, written, &stay_before);
  Subtract(after, written, &stay_after);
  removed_.clear();
  added_.clear();
  Subtract(before, stay_after, &removed_);
  Subtract(after, stay_before, &added_);
  Tell();
}

void PeriodicAnchors::Tell() {
  if (listener_ == nullptr) return;
  if (!removed_.empty()) listener_->OnAnchorsRemoved(removed_);
  if (!added_.empty()) listener_->OnAnchorsAdded(added_);
}

// --- State -------------------------------------------------------------------

std::vector<int64_t> PeriodicAnchors::AllLanes() const {
  std::vector<int64_t> lanes(index_.num_lanes());
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    lanes[lane] = static_cast<int64_t>(lane);
  }
  return lanes;
}

void PeriodicAnchors::Save(SavedState* state) const {
  index_.Save(state);
  std::vector<std::pair<Slot, int64_t>> phases;
  for (const auto& [trajectory, phase] : phases_) {
    phases.emplace_back(index_.At(trajectory, 0), phase);
  }
  std::sort(phases.begin(), phases.end());
  // Slots name trajectories, since handles depend on the history.
  std::vector<int64_t> lost;
  for (const auto& [slot, phase] : phases) {
    lost.insert(lost.end(), {slot, phase});
  }
  std::vector<int64_t> anchors;
  for (const Handle trajectory : set_.members()) {
    anchors.push_back(index_.At(trajectory, 0));
  }
  state->Set("period", rule_.period);
  state->Set("lost", std::move(lost));
  state->Set("anchors", std::move(anchors));
}

absl::Status PeriodicAnchors::Load(const SavedState& state,
                                   const ChangedOptions& changed) {
  const std::vector<int64_t> lanes = AllLanes();
  const std::vector<SlotRange> before = AnchorsOf(TrajectoriesOf(lanes));
  RILL_RETURN_IF_ERROR(index_.Load(state, changed));
  absl::Status status = ReadPhases(state, changed);
  if (status.ok()) status = ReadOrder(state, changed);
  // After an error too: the listener has to know the anchors that there are.
  TellOfDifference(before, AnchorsOf(TrajectoriesOf(lanes)), {});
  return status;
}

absl::Status PeriodicAnchors::ReadPhases(const SavedState& state,
                                         const ChangedOptions& changed) {
  RILL_ASSIGN_OR_RETURN(const auto period, state.Get<int64_t>("period"));
  if (period < 1) {
    return state.Damaged(absl::StrCat("period: got ", period, ", want >= 1"));
  }
  if (period != rule_.period && !changed.Has("period")) {
    return state.DoesNotFit(
        absl::StrCat("period: got ", period, ", want ", rule_.period));
  }
  RILL_ASSIGN_OR_RETURN(const auto lost, state.Ints("lost", 2));
  // The steps that were lost are known modulo the old period only.
  const auto known = [&](int64_t phase) {
    return period % rule_.period == 0 ? phase % rule_.period : 0;
  };
  absl::flat_hash_map<Handle, int64_t> phases;
  for (size_t i = 0; i < lost.size(); i += 2) {
    const Slot slot = lost[i];
    const int64_t phase = lost[i + 1];
    const std::optional<TrajectoryIndex::Place> place = index_.Find(slot);
    if (!place.has_value() || place->offset != 0 || phase < 1 ||
        phase >= period || !index_.Get(place->trajectory).is_cut ||
        !phases.insert({place->trajectory, known(phase)}).second) {
      return state.Damaged(absl::StrCat(
          "steps before slot ", slot, ": got ", phase, ", want [1, ", period,
          ") of another trajectory whose first row it is and that is cut"));
    }
  }
  phases_ = std::move(phases);
  return absl::OkStatus();
}

// Follows ReadPhases.
absl::Status PeriodicAnchors::ReadOrder(const SavedState& state,
                                        const ChangedOptions& changed) {
  set_.Clear();
  for (const Handle trajectory : TrajectoriesOf(AllLanes())) {
    Set(trajectory, index_.Get(trajectory).rows, PhaseOf(trajectory));
  }
  RILL_ASSIGN_OR_RETURN(const auto saved, state.Ints("anchors"));
  const auto count = static_cast<int64_t>(saved.size());
  if (count != set_.size() && !changed.Any()) {
    return state.DoesNotFit(absl::StrCat("trajectories with anchors: got ",
                                         count, ", want ", set_.size()));
  }
  std::vector<Handle> order;
  absl::flat_hash_map<Handle, bool> is_named;
  for (const Slot slot : saved) {
    const std::optional<TrajectoryIndex::Place> place = index_.Find(slot);
    if (!place.has_value() || place->offset != 0 ||
        !is_named.insert({place->trajectory, true}).second ||
        (set_.WeightOf(place->trajectory) == 0 && !changed.Any())) {
      return state.DoesNotFit(
          absl::StrCat("trajectory at slot ", slot,
                       ": want the first slot of another one with anchors"));
    }
    if (set_.WeightOf(place->trajectory) > 0) {
      order.push_back(place->trajectory);
    }
  }
  // With other options, the order is that of the rows where the saved one does
  // not fit.
  if (static_cast<int64_t>(order.size()) == set_.size()) set_.Reorder(order);
  return absl::OkStatus();
}

}  // namespace rill::samplers_internal
