// SPDX-License-Identifier: Apache-2.0
// Writes in place that change ends or ids: the rows from the first change on
// are taken off their lane and appended again as they are now.
#include <algorithm>

#include "rill/samplers/trajectories/trajectory_index.h"

namespace rill {

// Sorted by lane and step, one a row, and only for lanes where something
// changes.
void TrajectoryIndex::CollectChanges(const WriteEvent& event,
                                     std::vector<Change>* changes) const {
  changes->clear();
  if (event.ends.empty() && event.trajectory_ids.empty()) return;
  size_t row = 0;
  for (const SlotRange& range : event.written) {
    const int64_t lane = lanes().LaneOf(range.first);
    for (int64_t i = 0; i < range.count; ++i, ++row) {
      Change change = {.lane = lane,
                       .step = runs_.StepOf(lane, range.first + i)};
      if (change.step < runs_.begin(lane)) continue;  // Evicted meanwhile.
      if (!event.ends.empty()) change.is_end = event.ends[row] != 0;
      if (!event.trajectory_ids.empty()) change.id = event.trajectory_ids[row];
      changes->push_back(change);
    }
  }
  const auto place = [](const Change& c) { return std::pair(c.lane, c.step); };
  // Stable: of two changes to one row the later one of the call counts.
  std::stable_sort(
      changes->begin(), changes->end(),
      [&](const Change& a, const Change& b) { return place(a) < place(b); });
  // The last of several changes to one row stays.
  size_t kept = 0;
  for (size_t i = 0; i < changes->size(); ++i) {
    const Change& change = (*changes)[i];
    if (i + 1 < changes->size() && place((*changes)[i + 1]) == place(change)) {
      continue;
    }
    if (IsChange(change)) (*changes)[kept++] = change;
  }
  changes->resize(kept);
}

bool TrajectoryIndex::IsChange(const Change& change) const {
  const Handle trajectory = runs_.PlaceOf(change.lane, change.step).trajectory;
  const Runs::Record& record = runs_.at(trajectory);
  if (change.id.has_value() && (!record.has_id || record.id != *change.id)) {
    return true;
  }
  const bool is_end =
      record.is_closed && runs_.LastStep(trajectory) == change.step;
  return change.is_end.value_or(is_end) != is_end;
}

bool TrajectoryIndex::IsChange(const WriteEvent& event) const {
  std::vector<Change> changes;
  CollectChanges(event, &changes);
  return !changes.empty();
}

// `changes` are of one lane.
void TrajectoryIndex::Rewrite(absl::Span<const Change> changes) {
  const int64_t lane = changes[0].lane;
  // Ends and ids decide only about their own rows and those behind. Rows before
  // the first change so stay as they are.
  TakeOff(lane, changes[0].step);
  for (auto cutting = cuttings_.rbegin(); cutting != cuttings_.rend();
       ++cutting) {
    const int64_t end = cutting->step + cutting->rows;
    size_t inside = 0;
    while (inside < changes.size() && changes[inside].step < end) ++inside;
    PutBack(lane, *cutting, changes.subspan(0, inside));
    changes.remove_prefix(inside);
  }
}

// Fills cuttings_, the newest first.
void TrajectoryIndex::TakeOff(int64_t lane, int64_t first_step) {
  cuttings_.clear();
  while (runs_.end(lane) > first_step) {
    const Runs::Taken taken =
        runs_.TakeBack(lane, runs_.end(lane) - first_step);
    const Runs::Record& record = runs_.at(taken.trajectory);
    num_rows_ -= taken.rows;
    cuttings_.push_back({.step = runs_.end(lane),
                         .rows = taken.rows,
                         .key = {.has_id = record.has_id, .id = record.id},
                         .is_end = record.is_closed,
                         // Only the piece that has the first row carries the
                         // cut.
                         .is_cut = record.rows == 0 && record.is_cut});
    // Its end flag was on the rows that were taken off, so the rest is open
    // again.
    if (record.rows > 0 && record.is_closed) Open(taken.trajectory);
    UpdateSets(taken.trajectory);
    if (record.rows == 0) Free(taken.trajectory);
  }
}

void TrajectoryIndex::PutBack(int64_t lane, const Cutting& cutting,
                              absl::Span<const Change> changes) {
  const int64_t end = cutting.step + cutting.rows;
  // Rows between changes go back in one piece, each changed row by itself.
  bool is_cut = cutting.is_cut;  // Of the next row only.
  int64_t step = cutting.step;
  for (const Change& change : changes) {
    if (change.step > step) {
      Append(lane, change.step - step, cutting.key, /*is_end=*/false, is_cut);
      is_cut = false;
    }
    Key key = cutting.key;
    if (change.id.has_value()) key = {.has_id = true, .id = *change.id};
    const bool was_end = cutting.is_end && change.step + 1 == end;
    Append(lane, 1, key, change.is_end.value_or(was_end),
           is_cut && key == cutting.key);
    is_cut = false;
    step = change.step + 1;
  }
  if (step < end) Append(lane, end - step, cutting.key, cutting.is_end, is_cut);
}

}  // namespace rill
