// SPDX-License-Identifier: Apache-2.0
// The index follows the writes. A row joins the open trajectory of its lane and
// id, an end flag closes it, and eviction takes rows from the front. Rows are
// kept as pieces, consecutive rows of one trajectory, in one ordered list for
// each lane. So rows of several producers may alternate in a ring. Steps are
// counted without end, so the place where the ring wraps does not matter.
// Nothing is kept for a row and nothing is ever scanned. Trajectories with
// starts by a rule lie in an array of their own, which a draw indexes.
#include "rill/samplers/trajectories/trajectory_index.h"

#include <algorithm>

#include "rill/slots/lane_blocks.h"

namespace rill {

using samplers_internal::PieceScanner;

TrajectoryIndex::TrajectoryIndex(std::vector<StartRule> rules)
    : rules_(std::move(rules)),
      sets_(rules_.size()),
      lengths_(rules_.size()),
      open_(0, OpenHash{&runs_}, OpenEq{&runs_}) {}

void TrajectoryIndex::OnAttach(const Lanes& lanes,
                               absl::Span<const Cursor> cursors) {
  ForgetRows();
  runs_.Reset(lanes, static_cast<int64_t>(cursors.size()));
  by_lane_.assign(cursors.size(), Lane());
  for (size_t lane = 0; lane < cursors.size(); ++lane) {
    // The live rows come with the OnWrite that follows.
    const int64_t written = cursors[lane].written;
    const int64_t before = written - std::min(written, lanes.capacity);
    // Steps are those of the cursors, so a slot says its step.
    runs_.Skip(static_cast<int64_t>(lane), before);
    // Rows before the live ones are gone, so the first row may continue any of
    // them.
    if (before > 0) by_lane_[lane].tail = Tail::kUnknown;
  }
}

void TrajectoryIndex::OnClear() {
  ForgetRows();
  runs_.Reset(runs_.lanes(), runs_.num_lanes());
  by_lane_.assign(by_lane_.size(), Lane());
}

void TrajectoryIndex::ForgetRows() {
  for (auto& set : sets_) set.Clear();
  for (auto& lengths : lengths_) lengths.Clear();
  open_.clear();
  num_rows_ = 0;
}

void TrajectoryIndex::OnRetire(const WriteEvent& event) {
  if (!event.is_append) return;
  LaneBlocks blocks(lanes(), event.retired, event.retired_blocks);
  for (LaneBlock block; blocks.Next(&block);) Retire(block);
}

void TrajectoryIndex::Retire(const LaneBlock& block) {
  // In whatever order a lane's rows are named, they are its oldest.
  for (int64_t lane = block.lane; lane < block.end(); ++lane) {
    Evict(lane, block.count);
  }
}

void TrajectoryIndex::OnWrite(const WriteEvent& event) {
  if (!event.is_append) {
    CollectChanges(event, &changes_);
    for (size_t begin = 0; begin < changes_.size();) {
      size_t end = begin + 1;
      while (end < changes_.size() &&
             changes_[end].lane == changes_[begin].lane) {
        ++end;
      }
      Rewrite(absl::MakeConstSpan(changes_).subspan(begin, end - begin));
      begin = end;
    }
    return;
  }
  PieceScanner scanner(event.ends, event.trajectory_ids);
  int64_t row = 0;
  for (const SlotRange& range : event.written) {
    const int64_t lane = lanes().LaneOf(range.first);
    SkipTo(lane, lanes().PositionOf(range.first), range.count);
    AppendRows(lane, range.count, row, event, &scanner);
    row += range.count;
  }
  rows_seen_ += row;
}

void TrajectoryIndex::AppendRows(int64_t lane, int64_t count, int64_t row,
                                 const WriteEvent& event,
                                 PieceScanner* scanner) {
  for (const int64_t end = row + count; row < end;) {
    const PieceScanner::Piece piece = scanner->Next(row, end - row);
    Key key = {.has_id = !event.trajectory_ids.empty()};
    if (key.has_id) key.id = event.trajectory_ids[row];
    Append(lane, piece.count, key, piece.is_end,
           event.begins_cut.empty() ? IsCutHere(by_lane_[lane], key)
                                    : event.begins_cut[row] != 0);
    row += piece.count;
  }
}

// A batch longer than the ring names only the rows that it left behind. It
// reports the dropped rows (begins_cut), except from a storage that does not.
void TrajectoryIndex::SkipTo(int64_t lane, int64_t position, int64_t count) {
  const int64_t capacity = lanes().capacity;
  int64_t skipped = position - runs_.end(lane) % capacity;
  if (skipped < 0) skipped += capacity;
  // Rows that the storage has not retired by now are overwritten by this batch;
  // with skipped steps between, none of the old ones is a neighbour.
  const int64_t live = runs_.end(lane) - runs_.begin(lane);
  const int64_t too_many = live + count - capacity;
  Evict(lane, skipped > 0 ? live : std::max<int64_t>(too_many, 0));
  if (skipped == 0) return;
  runs_.Skip(lane, skipped);
  by_lane_[lane].tail = Tail::kUnknown;
}

bool TrajectoryIndex::IsCutHere(const Lane& lane, const Key& key) const {
  switch (lane.tail) {
    case Tail::kNone:
    case Tail::kClosed:
      return false;
    case Tail::kUnknown:
      return true;
    case Tail::kOpen:
      return lane.tail_key == key;
  }
  return false;
}

void TrajectoryIndex::Append(int64_t lane, int64_t rows, const Key& key,
                             bool is_end, bool is_cut_if_new) {
  // A row without an open trajectory of its key opens one. It is cut where rows
  // of the same trajectory are known, or may be, to have gone before.
  Handle trajectory = FindOpen(lane, key);
  const bool is_new = trajectory < 0;
  if (is_new) {
    trajectory = runs_.Make(lane);
    Runs::Record& record = runs_.at(trajectory);
    record.has_id = key.has_id;
    record.id = key.id;
    record.is_cut = is_cut_if_new;
    record.is_closed = is_end;
    // A row with an end flag closes its trajectory at once, so it never is in
    // open_.
    if (!is_end) Open(trajectory);
  } else if (is_end) {
    Shut(trajectory);
  }
  runs_.Extend(trajectory, rows);
  num_rows_ += rows;
  by_lane_[lane].tail = is_end ? Tail::kClosed : Tail::kOpen;
  by_lane_[lane].tail_key = key;
  UpdateSets(trajectory);
}

void TrajectoryIndex::Evict(int64_t lane, int64_t rows) {
  rows = std::min(rows, runs_.end(lane) - runs_.begin(lane));
  num_rows_ -= rows;
  while (rows > 0) {
    const Runs::Taken taken = runs_.TakeFront(lane, rows);
    rows -= taken.rows;
    Runs::Record& record = runs_.at(taken.trajectory);
    // Before the sets are updated: a rule may ask for the beginning.
    record.is_cut = true;
    UpdateSets(taken.trajectory);
    // Behind UpdateSets, which takes a trajectory without rows out of the sets.
    if (record.rows == 0) Free(taken.trajectory);
  }
}

void TrajectoryIndex::Free(Handle trajectory) {
  if (!runs_.at(trajectory).is_closed) Shut(trajectory);
  runs_.Free(trajectory);
}

TrajectoryIndex::Handle TrajectoryIndex::FindOpen(int64_t lane,
                                                  const Key& key) const {
  if (!key.has_id) return by_lane_[lane].open_without_id;
  // By lane and id: different lanes may use the same id.
  const auto found = open_.find(OpenKey{lane, key.id});
  return found == open_.end() ? -1 : *found;
}

void TrajectoryIndex::Open(Handle trajectory) {
  Runs::Record& record = runs_.at(trajectory);
  record.is_closed = false;
  if (record.has_id) {
    open_.insert(trajectory);
  } else {
    by_lane_[record.lane].open_without_id = trajectory;
  }
}

void TrajectoryIndex::Shut(Handle trajectory) {
  Runs::Record& record = runs_.at(trajectory);
  record.is_closed = true;
  if (record.has_id) {
    open_.erase(trajectory);
  } else {
    by_lane_[record.lane].open_without_id = -1;
  }
}

void TrajectoryIndex::UpdateSets(Handle trajectory) {
  const Runs::Record& record = runs_.at(trajectory);
  for (size_t i = 0; i < rules_.size(); ++i) {
    // A rule is asked for each change of a trajectory; the sets change only
    // where the number of its starts does.
    const int64_t starts =
        rules_[i].Count(record.rows, record.is_cut, record.is_closed);
    sets_[i].Set(trajectory, starts);
    if (rules_[i].keeps_longest) {
      lengths_[i].Set(trajectory, starts > 0 ? record.rows : 0);
    }
  }
}

TrajectoryIndex::Trajectory TrajectoryIndex::Get(Handle trajectory) const {
  const Runs::Record& record = runs_.at(trajectory);
  Trajectory result = {.lane = record.lane,
                       .rows = record.rows,
                       .is_closed = record.is_closed,
                       .is_cut = record.is_cut};
  if (record.has_id) result.id = record.id;
  return result;
}

Slot TrajectoryIndex::At(Handle trajectory, int64_t offset) const {
  const int64_t lane = runs_.at(trajectory).lane;
  Slot slot = 0;
  runs_.ForEachRun(trajectory, offset, 1, [&](int64_t step, int64_t) {
    slot = runs_.SlotOf(lane, step);
  });
  return slot;
}

void TrajectoryIndex::AppendSlots(Handle trajectory, int64_t offset,
                                  int64_t count,
                                  std::vector<Slot>* slots) const {
  const int64_t lane = runs_.at(trajectory).lane;
  const int64_t capacity = lanes().capacity;
  runs_.ForEachRun(trajectory, offset, count, [&](int64_t step, int64_t rows) {
    // One division a run, not one a row: a slice is mostly one run.
    const Slot lane_end = (lane + 1) * capacity;
    Slot slot = runs_.SlotOf(lane, step);
    const size_t at = slots->size();
    slots->resize(at + static_cast<size_t>(rows));
    for (size_t i = at; i < slots->size(); ++i) {
      (*slots)[i] = slot;
      if (++slot == lane_end) slot -= capacity;
    }
  });
}

void TrajectoryIndex::AppendRanges(Handle trajectory, int64_t offset,
                                   int64_t count,
                                   std::vector<SlotRange>* ranges) const {
  const int64_t lane = runs_.at(trajectory).lane;
  const Slot lane_end = (lane + 1) * lanes().capacity;
  runs_.ForEachRun(trajectory, offset, count, [&](int64_t step, int64_t rows) {
    const Slot first = runs_.SlotOf(lane, step);
    const int64_t before_wrap = std::min(rows, lane_end - first);
    ranges->push_back({.first = first, .count = before_wrap});
    if (rows == before_wrap) return;
    ranges->push_back(
        {.first = lane_end - lanes().capacity, .count = rows - before_wrap});
  });
}

std::optional<TrajectoryIndex::Place> TrajectoryIndex::Find(Slot slot) const {
  if (slot < 0 || by_lane_.empty() || slot >= lanes().num_slots()) {
    return std::nullopt;
  }
  const int64_t lane = lanes().LaneOf(slot);
  const int64_t step = runs_.StepOf(lane, slot);
  if (step < runs_.begin(lane)) return std::nullopt;
  return runs_.PlaceOf(lane, step);
}

int64_t TrajectoryIndex::AgeOf(Slot slot) const {
  const int64_t lane = lanes().LaneOf(slot);
  return runs_.end(lane) - 1 - runs_.StepOf(lane, slot);
}

int64_t TrajectoryIndex::StepsBefore(Slot slot) const {
  const int64_t lane = lanes().LaneOf(slot);
  return runs_.StepOf(lane, slot) - runs_.begin(lane);
}

void TrajectoryIndex::AppendPieces(const SlotRange& slots,
                                   std::vector<Piece>* pieces) const {
  const int64_t lane = lanes().LaneOf(slots.first);
  const int64_t end = runs_.StepOf(lane, slots.first + slots.count - 1) + 1;
  const int64_t first = end - slots.count;
  runs_.ForEachPiece(
      lane, std::max(first, runs_.begin(lane)), end,
      [&](const Place& place, int64_t step, int64_t count) {
        pieces->push_back(
            {.place = place,
             .slots = {.first = slots.first + (step - first), .count = count}});
      });
}

void TrajectoryIndex::AppendLane(int64_t lane, int64_t most,
                                 std::vector<Piece>* pieces) const {
  int64_t begin = runs_.begin(lane);
  const int64_t end = begin + std::min(most, runs_.end(lane) - begin);
  while (begin < end) {
    const int64_t position = begin % lanes().capacity;
    const int64_t count = std::min(end - begin, lanes().capacity - position);
    AppendPieces({.first = lanes().SlotOf(lane, position), .count = count},
                 pieces);
    begin += count;
  }
}

std::pair<int64_t, int64_t> TrajectoryIndex::RangeOfRows() const {
  std::pair<int64_t, int64_t> range = {0, 0};
  for (Handle handle = 0; handle < runs_.num_handles(); ++handle) {
    const int64_t rows = runs_.at(handle).rows;
    if (rows == 0) continue;
    range.first = range.first == 0 ? rows : std::min(range.first, rows);
    range.second = std::max(range.second, rows);
  }
  return range;
}

int64_t TrajectoryIndex::memory_bytes() const {
  int64_t bytes = runs_.memory_bytes() +
                  static_cast<int64_t>(open_.capacity() * (sizeof(Handle) + 1) +
                                       by_lane_.capacity() * sizeof(Lane));
  for (const auto& set : sets_) bytes += set.memory_bytes();
  for (const auto& lengths : lengths_) bytes += lengths.memory_bytes();
  return bytes;
}

}  // namespace rill
