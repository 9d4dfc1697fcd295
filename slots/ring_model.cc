// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/ring_model.h"

#include <algorithm>
#include <set>
#include <utility>

namespace rill::slots_internal {

RingModel::RingModel(const Lanes& lanes, WriteObserver* observer)
    : lanes_(lanes),
      observer_(observer),
      cursors_(lanes.count),
      begun_(lanes.count),
      live_(lanes.count),
      writes_(lanes.num_slots()) {
  observer_->OnAttach(lanes_, cursors_);
}

std::vector<SlotRange> RingModel::Ranges(int64_t lane, int64_t first_step,
                                         int64_t count) const {
  std::vector<SlotRange> ranges;
  while (count > 0) {
    const int64_t position = first_step % lanes_.capacity;
    const int64_t piece = std::min(count, lanes_.capacity - position);
    ranges.push_back({lanes_.SlotOf(lane, position), piece});
    first_step += piece;
    count -= piece;
  }
  return ranges;
}

void RingModel::Append(const std::vector<int64_t>& counts,
                       const std::function<void()>& between) {
  Begin(counts);
  between();
  Publish();
}

int64_t RingModel::Room(int64_t lane) const {
  return lanes_.capacity - begun_[lane];
}

void RingModel::Begin(const std::vector<int64_t>& counts) {
  const int64_t capacity = lanes_.capacity;
  OpenAppend append;
  append.counts = counts;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    const int64_t first = cursors_[lane].written - live_[lane].size();
    const int64_t step = cursors_[lane].written + begun_[lane];
    const int64_t live = live_[lane].size();
    const int64_t lost =
        std::max<int64_t>(live + begun_[lane] + counts[lane] - capacity, 0);
    const int64_t kept = std::min(counts[lane], capacity);
    // An append may be longer than the ring: it then loses rows of its own too,
    // which were never live.
    for (const SlotRange& r : Ranges(lane, first, std::min(lost, live))) {
      append.retired.push_back(r);
    }
    for (const SlotRange& r : Ranges(lane, step + counts[lane] - kept, kept)) {
      append.written.push_back(r);
    }
    begun_[lane] += counts[lane];
  }
  WriteEvent event;
  event.retired = append.retired;
  event.written = append.written;
  observer_->OnRetire(event);
  for (const SlotRange& range : append.retired) {
    live_[lanes_.LaneOf(range.first)].erase(
        live_[lanes_.LaneOf(range.first)].begin(),
        live_[lanes_.LaneOf(range.first)].begin() + range.count);
  }
  open_.push_back(std::move(append));
}

void RingModel::Publish() {
  // In the order in which they were begun, as WriteObserver promises.
  const OpenAppend append = std::move(open_.front());
  open_.pop_front();
  WriteEvent event;
  event.retired = append.retired;
  event.written = append.written;
  observer_->OnWrite(event);
  for (const SlotRange& range : append.written) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      live_[lanes_.LaneOf(slot)].push_back(slot);
      ++writes_[slot];
    }
  }
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    cursors_[lane].written += append.counts[lane];
    begun_[lane] -= append.counts[lane];
  }
}

void RingModel::WriteInPlace(const std::vector<Slot>& slots,
                             const std::function<void()>& between,
                             bool is_patch) {
  std::vector<SlotRange> ranges;
  for (const Slot slot : slots) ranges.push_back({slot, 1});
  WriteEvent event;
  event.is_append = false;
  event.is_patch = is_patch;
  event.retired = ranges;
  event.written = ranges;
  observer_->OnRetire(event);
  between();
  observer_->OnWrite(event);
  if (is_patch) return;
  for (const Slot slot : std::set<Slot>(slots.begin(), slots.end())) {
    ++writes_[slot];
  }
}

void RingModel::Clear() {
  observer_->OnClear();
  for (std::deque<Slot>& lane : live_) lane.clear();
  std::fill(cursors_.begin(), cursors_.end(), Cursor());
}

void RingModel::Attach(WriteObserver* late) const {
  late->OnAttach(lanes_, cursors_);
  std::vector<SlotRange> ranges;
  for (int64_t lane = 0; lane < lanes_.count; ++lane) {
    const int64_t live = live_[lane].size();
    for (const SlotRange& r :
         Ranges(lane, cursors_[lane].written - live, live)) {
      ranges.push_back(r);
    }
  }
  WriteEvent event;
  event.written = ranges;
  if (!ranges.empty()) late->OnWrite(event);
}

std::vector<Slot> RingModel::Live() const {
  std::vector<Slot> slots;
  for (const std::deque<Slot>& lane : live_) {
    slots.insert(slots.end(), lane.begin(), lane.end());
  }
  return slots;
}

}  // namespace rill::slots_internal
