// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/conformance/storage_simulator.h"

#include <algorithm>

namespace rill {

namespace {

constexpr int64_t kEpisode = 7;  // Steps.

}  // namespace

StorageSimulator::StorageSimulator(const Lanes& lanes)
    : lanes_(lanes),
      written_(lanes.count, 0),
      live_(lanes.num_slots(), false),
      times_written_(lanes.num_slots(), 0),
      is_end_(lanes.num_slots(), 0) {}

void StorageSimulator::AddObserver(WriteObserver* observer) {
  observers_.push_back(observer);
  Attach(observer);
}

void StorageSimulator::AttachAgain() {
  for (Slot slot = 0; slot < lanes_.num_slots(); ++slot) {
    if (live_[slot]) ++times_written_[slot];
  }
  for (WriteObserver* observer : observers_) Attach(observer);
}

void StorageSimulator::Attach(WriteObserver* observer) const {
  std::vector<Cursor> cursors;
  std::vector<SlotRange> rows;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    cursors.push_back({.written = written_[lane]});
    const int64_t end = written_[lane];
    for (int64_t step = std::max<int64_t>(end - lanes_.capacity, 0); step < end;
         ++step) {
      const Slot slot = lanes_.SlotOf(lane, step % lanes_.capacity);
      const bool joins = !rows.empty() && slot % lanes_.capacity != 0 &&
                         rows.back().first + rows.back().count == slot;
      if (joins) {
        ++rows.back().count;
      } else {
        rows.push_back({.first = slot, .count = 1});
      }
    }
  }
  observer->OnAttach(lanes_, cursors);
  if (rows.empty()) return;
  WriteEvent event;
  event.written = rows;
  const std::vector<uint8_t> ends = EndsOf(rows);
  event.ends = ends;
  observer->OnWrite(event);
}

void StorageSimulator::BeginAppend(int64_t first_lane, int64_t num_lanes,
                                   int64_t steps,
                                   absl::Span<const double> priorities) {
  is_append_ = true;
  is_replacement_ = false;
  begins_cut_.clear();
  ranges_.clear();
  retired_.clear();
  priorities_.assign(priorities.begin(), priorities.end());
  const int64_t capacity = lanes_.capacity;
  const int64_t kept = std::min(steps, capacity);
  if (kept < steps) begins_cut_.assign(num_lanes * kept, 0);
  for (int64_t lane = first_lane; lane < first_lane + num_lanes; ++lane) {
    const int64_t live = std::min(written_[lane], capacity);
    AddRows(lane, written_[lane] - live,
            std::min(std::max<int64_t>(live + steps - capacity, 0), live),
            &retired_);
    for (int64_t i = 0; i < steps; ++i, ++written_[lane]) {
      is_end_[lanes_.SlotOf(lane, written_[lane] % capacity)] =
          written_[lane] % kEpisode == kEpisode - 1 ? 1 : 0;
    }
    AddRows(lane, written_[lane] - kept, kept, &ranges_);
    if (kept < steps && (written_[lane] - kept) % kEpisode != 0) {
      begins_cut_[(lane - first_lane) * kept] = 1;
    }
  }
  Retire();
}

void StorageSimulator::BeginOverwrite(absl::Span<const Slot> slots,
                                      bool replaces) {
  is_append_ = false;
  is_replacement_ = replaces;
  begins_cut_.clear();
  ranges_.clear();
  priorities_.clear();
  for (Slot slot : slots) ranges_.push_back({.first = slot, .count = 1});
  retired_ = ranges_;
  Retire();
}

void StorageSimulator::Finish() {
  for (const SlotRange& range : ranges_) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      live_[slot] = true;
      if (is_append_) ++times_written_[slot];
    }
  }
  const WriteEvent event = Event();
  for (WriteObserver* observer : observers_) observer->OnWrite(event);
}

void StorageSimulator::Clear() {
  std::fill(written_.begin(), written_.end(), 0);
  std::fill(live_.begin(), live_.end(), false);
  for (WriteObserver* observer : observers_) observer->OnClear();
}

std::vector<Slot> StorageSimulator::Live() const {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < lanes_.num_slots(); ++slot) {
    if (live_[slot]) slots.push_back(slot);
  }
  return slots;
}

void StorageSimulator::AddRows(int64_t lane, int64_t first_step, int64_t count,
                               std::vector<SlotRange>* ranges) const {
  const int64_t begin = first_step % lanes_.capacity;
  const int64_t before_wrap = std::min(count, lanes_.capacity - begin);
  if (count == 0) return;
  ranges->push_back(
      {.first = lanes_.SlotOf(lane, begin), .count = before_wrap});
  if (before_wrap == count) return;
  ranges->push_back(
      {.first = lanes_.SlotOf(lane, 0), .count = count - before_wrap});
}

// Rows that are written in place stay live and count as the coming ones.
void StorageSimulator::Retire() {
  for (const SlotRange& range : retired_) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      if (is_append_) {
        live_[slot] = false;
      } else {
        ++times_written_[slot];
      }
    }
  }
  ends_ = EndsOf(ranges_);
  const WriteEvent event = Event();
  for (WriteObserver* observer : observers_) observer->OnRetire(event);
}

std::vector<uint8_t> StorageSimulator::EndsOf(
    absl::Span<const SlotRange> ranges) const {
  std::vector<uint8_t> ends;
  for (const SlotRange& range : ranges) {
    ends.insert(ends.end(), is_end_.begin() + range.first,
                is_end_.begin() + range.first + range.count);
  }
  return ends;
}

WriteEvent StorageSimulator::Event() const {
  WriteEvent event;
  event.is_append = is_append_;
  event.is_replacement = is_replacement_;
  event.retired = retired_;
  event.written = ranges_;
  event.ends = ends_;
  event.priorities = priorities_;
  event.begins_cut = begins_cut_;
  return event;
}

}  // namespace rill
