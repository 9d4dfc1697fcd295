// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/testing/storage_model.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

StorageModel::StorageModel(const Lanes& lanes, Told told)
    : lanes_(lanes),
      told_(told),
      by_lane_(lanes.count),
      writes_(lanes.num_slots()) {}

void StorageModel::Attach(WriteObserver* observer) const {
  std::vector<Cursor> cursors;
  Write write;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    const Lane& rows = by_lane_[lane];
    cursors.push_back({.written = rows.begun - rows.in_flight});
    if (rows.rows.empty()) continue;
    AddRanges(lane, rows.rows.front().step,
              static_cast<int64_t>(rows.rows.size()), &write.written);
    for (const Row& row : rows.rows) {
      write.rows.push_back({lane, row});
      write.rows.back().second.priority.reset();
    }
  }
  Tell(&write, told_);
  observer->OnAttach(lanes_, cursors);
  if (!write.written.empty()) observer->OnWrite(write.event);
}

void StorageModel::AttachAgain() {
  for (const Slot slot : Live()) ++writes_[slot];
  for (WriteObserver* observer : observers_) Attach(observer);
}

void StorageModel::BeginAppend(int64_t first_lane,
                               const std::vector<int64_t>& counts,
                               const NextValue& next) {
  Write& write = appends_.emplace_back();
  const bool any_dropped =
      *std::max_element(counts.begin(), counts.end()) > lanes_.capacity;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t lane = first_lane + static_cast<int64_t>(i);
    const int64_t kept = std::min(counts[i], lanes_.capacity);
    AddRows(lane, counts[i], any_dropped, next, &write);
    RetireFor(lane, kept, &write);
    Lane& rows = by_lane_[lane];
    AddRanges(lane, rows.begun + counts[i] - kept, kept, &write.written);
    rows.begun += counts[i];
    rows.in_flight += kept;
  }
  Tell(&write, told_);
  write.event.retired = write.retired;
  for (WriteObserver* observer : observers_) observer->OnRetire(write.event);
}

void StorageModel::AddRows(int64_t lane, int64_t count, bool any_dropped,
                           const NextValue& next, Write* write) const {
  const int64_t dropped = std::max<int64_t>(count - lanes_.capacity, 0);
  std::set<std::optional<int64_t>> open;  // Dropped ones that may go on.
  for (int64_t i = 0; i < count; ++i) {
    const Value value = next(lane);
    Row row = {.step = by_lane_[lane].begun + i, .priority = value.priority};
    if (told_.ids) row.id = value.id;
    row.is_end = told_.ends && value.is_end;
    if (i < dropped) {
      open.insert(row.id);
      if (row.is_end) open.erase(row.id);
      continue;
    }
    row.is_after_gap = open.erase(row.id) > 0;
    if (any_dropped) write->begins_cut.push_back(row.is_after_gap ? 1 : 0);
    write->rows.push_back({lane, row});
  }
}

void StorageModel::RetireFor(int64_t lane, int64_t kept, Write* write) {
  std::deque<Row>& rows = by_lane_[lane].rows;
  const auto live = static_cast<int64_t>(rows.size());
  const int64_t gone = std::clamp<int64_t>(
      live + by_lane_[lane].in_flight + kept - lanes_.capacity, 0, live);
  if (gone == 0) return;
  AddRanges(lane, rows.front().step, gone, &write->retired);
  for (int64_t i = 0; i < gone; ++i) {
    const Row row = rows.front();
    rows.pop_front();
    if (row.is_end) continue;
    // The next row of its trajectory comes before an end of its id.
    for (Row& other : rows) {
      if (other.id != row.id) continue;
      other.is_after_gap = true;
      break;
    }
  }
}

void StorageModel::FinishAppend() {
  // A storage lets writes in place to the same slots end before.
  const auto shares_slots = [&](const Write& other) {
    for (const SlotRange& slot : other.written) {
      for (const SlotRange& range : appends_.front().written) {
        if (slot.first >= range.first &&
            slot.first < range.first + range.count) {
          return true;
        }
      }
    }
    return false;
  };
  while (std::any_of(in_place_.begin(), in_place_.end(), shares_slots)) {
    FinishInPlace();
  }
  const Write& write = appends_.front();
  std::map<int64_t, int64_t> in_lane;
  for (const auto& [lane, row] : write.rows) ++in_lane[lane];
  for (const auto& [lane, count] : in_lane) {
    by_lane_[lane].in_flight -= count;
    // A row before a batch that dropped rows is not its neighbour.
    if (!write.begins_cut.empty()) by_lane_[lane].newest.reset();
  }
  for (const auto& [lane, row] : write.rows) Publish(lane, row);
  for (WriteObserver* observer : observers_) observer->OnWrite(write.event);
  appends_.pop_front();
}

void StorageModel::Append(int64_t lane, const std::vector<Value>& values) {
  size_t i = 0;
  Append(lane, 1, static_cast<int64_t>(values.size()),
         [&](int64_t) { return values[i++]; });
}

void StorageModel::Publish(int64_t lane_number, const Row& row) {
  Lane& lane = by_lane_[lane_number];
  ++writes_[SlotOf(lane_number, row.step)];
  Row added = row;
  added.is_after_gap |= lane.newest.has_value() && !lane.newest->is_end &&
                        lane.newest->id == row.id;
  if (added.is_after_gap) {
    // Not where the row before it in its trajectory is still there.
    const auto before =
        std::find_if(lane.rows.rbegin(), lane.rows.rend(),
                     [&](const Row& other) { return other.id == row.id; });
    if (before != lane.rows.rend() && !before->is_end) {
      added.is_after_gap = false;
    }
  }
  lane.rows.push_back(added);
  lane.newest = row;
}

void StorageModel::BeginInPlace(const std::vector<Slot>& slots,
                                const std::vector<Value>& values, Told told,
                                InPlace kind) {
  Write& write = in_place_.emplace_back();
  for (size_t i = 0; i < slots.size(); ++i) {
    Row changed = *Find(slots[i]);
    changed.is_end = values[i].is_end;
    changed.id = values[i].id;
    changed.priority.reset();
    write.rows.push_back({lanes_.LaneOf(slots[i]), changed});
    write.written.push_back({.first = slots[i], .count = 1});
  }
  if (kind != InPlace::kPatch) {
    for (const Slot slot : std::set<Slot>(slots.begin(), slots.end())) {
      ++writes_[slot];
    }
  }
  write.event.is_append = false;
  write.event.is_patch = kind == InPlace::kPatch;
  write.event.is_replacement = kind == InPlace::kReplacement;
  Tell(&write, told);
  write.event.retired = write.written;
  for (WriteObserver* observer : observers_) observer->OnRetire(write.event);
}

void StorageModel::FinishInPlace() {
  const Write& write = in_place_.front();
  std::set<int64_t> lanes;
  for (size_t i = 0; i < write.rows.size(); ++i) {
    const SlotRange& slot = write.written[i];
    if (std::count(write.written.begin() + i, write.written.end(), slot) > 1) {
      continue;  // The later value counts.
    }
    const auto& [lane_number, changed] = write.rows[i];
    Lane& lane = by_lane_[lane_number];
    lanes.insert(lane_number);
    for (Row& row : lane.rows) {
      if (row.step != changed.step) continue;
      if (!write.ends.empty()) row.is_end = changed.is_end;
      if (!write.ids.empty() && row.id != changed.id) {
        row.id = changed.id;
        row.is_after_gap = false;
      }
      if (lane.newest->step == row.step) lane.newest = row;
    }
  }
  for (const int64_t number : lanes) {
    Lane& lane = by_lane_[number];
    for (const std::vector<size_t>& group : Group(lane)) {
      for (size_t i = 1; i < group.size(); ++i) {
        lane.rows[group[i]].is_after_gap = false;
      }
    }
  }
  for (WriteObserver* observer : observers_) observer->OnWrite(write.event);
  in_place_.pop_front();
}

void StorageModel::FinishAll() {
  while (!in_place_.empty()) FinishInPlace();
  while (!appends_.empty()) FinishAppend();
}

void StorageModel::Clear() {
  FinishAll();
  by_lane_.assign(lanes_.count, Lane());
  for (WriteObserver* observer : observers_) observer->OnClear();
}

bool StorageModel::IsBlocked(int64_t first_lane, int64_t num_lanes,
                             int64_t steps) const {
  for (int64_t lane = first_lane; lane < first_lane + num_lanes; ++lane) {
    if (std::min(steps, lanes_.capacity) > Room(lane)) return true;
  }
  return false;
}

const StorageModel::Row* StorageModel::Find(Slot slot) const {
  if (slot < 0 || slot >= lanes_.num_slots()) return nullptr;
  const std::deque<Row>& rows = by_lane_[lanes_.LaneOf(slot)].rows;
  if (rows.empty()) return nullptr;
  const int64_t first = rows.front().step % lanes_.capacity;
  const int64_t i =
      (lanes_.PositionOf(slot) - first + lanes_.capacity) % lanes_.capacity;
  return i < static_cast<int64_t>(rows.size()) ? &rows[i] : nullptr;
}

bool StorageModel::IsLive(Slot slot) const { return Find(slot) != nullptr; }

bool StorageModel::is_end(Slot slot) const { return Find(slot)->is_end; }

std::vector<Slot> StorageModel::Live() const {
  std::vector<Slot> slots;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    const std::vector<Slot> of_lane = LiveOf(lane);
    slots.insert(slots.end(), of_lane.begin(), of_lane.end());
  }
  return slots;
}

std::vector<Slot> StorageModel::LiveOf(int64_t lane) const {
  std::vector<Slot> slots;
  for (const Row& row : by_lane_[lane].rows) {
    slots.push_back(SlotOf(lane, row.step));
  }
  return slots;
}

std::vector<StorageModel::Trajectory> StorageModel::Trajectories() const {
  std::vector<Trajectory> trajectories;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    const std::deque<Row>& rows = by_lane_[lane].rows;
    for (const std::vector<size_t>& group : Group(by_lane_[lane])) {
      Trajectory trajectory = {.lane = lane,
                               .id = rows[group[0]].id,
                               .is_closed = rows[group.back()].is_end,
                               .is_cut = rows[group[0]].is_after_gap,
                               .slots = {}};
      for (const size_t i : group) {
        trajectory.slots.push_back(SlotOf(lane, rows[i].step));
      }
      trajectories.push_back(std::move(trajectory));
    }
  }
  return trajectories;
}

std::vector<std::vector<size_t>> StorageModel::Group(const Lane& lane) const {
  std::vector<std::vector<size_t>> groups;
  std::map<std::optional<int64_t>, size_t> open;
  for (size_t i = 0; i < lane.rows.size(); ++i) {
    const Row& row = lane.rows[i];
    const auto [found, is_new] = open.insert({row.id, groups.size()});
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(i);
    if (row.is_end) open.erase(found);
  }
  return groups;
}

void StorageModel::AddRanges(int64_t lane, int64_t step, int64_t count,
                             std::vector<SlotRange>* ranges) const {
  const int64_t position = step % lanes_.capacity;
  const int64_t before_wrap = std::min(count, lanes_.capacity - position);
  if (before_wrap > 0) {
    ranges->push_back({lanes_.SlotOf(lane, position), before_wrap});
  }
  if (count > before_wrap) {
    ranges->push_back({lanes_.SlotOf(lane, 0), count - before_wrap});
  }
}

void StorageModel::Tell(Write* write, Told told) const {
  for (const auto& [lane, row] : write->rows) {
    if (told.ends) write->ends.push_back(row.is_end ? 1 : 0);
    if (told.ids) write->ids.push_back(row.id.value_or(0));
    if (row.priority) write->priorities.push_back(*row.priority);
  }
  if (write->priorities.size() != write->rows.size()) write->priorities.clear();
  write->event.written = write->written;
  write->event.ends = write->ends;
  write->event.trajectory_ids = write->ids;
  write->event.priorities = write->priorities;
  write->event.begins_cut = write->begins_cut;
}

}  // namespace rill
