// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/trajectory_runs.h"

#include <algorithm>

namespace rill::samplers_internal {
namespace {

constexpr uint8_t kRunsPerFinger = 32;

}  // namespace

void TrajectoryRuns::Reset(const Lanes& lanes, int64_t num_lanes) {
  lanes_ = lanes;
  by_lane_.clear();
  by_lane_.resize(num_lanes);
  sliding_.Reset(num_lanes);
  records_.clear();
  free_.clear();
  fingers_.clear();
}

void TrajectoryRuns::Skip(int64_t lane, int64_t steps) {
  by_lane_[lane].end += steps;
  // The lane has no rows here, so begin and end stay together, and it does not
  // slide.
  by_lane_[lane].begin = by_lane_[lane].end;
}

TrajectoryRuns::Handle TrajectoryRuns::Make(int64_t lane) {
  Handle handle = static_cast<Handle>(records_.size());
  if (free_.empty()) {
    records_.Grow();
  } else {
    handle = free_.back();
    free_.pop_back();
  }
  records_[handle].lane = static_cast<int32_t>(lane);
  return handle;
}

void TrajectoryRuns::Free(Handle trajectory) {
  if (records_[trajectory].has_fingers) fingers_.erase(trajectory);
  records_[trajectory] = Record();
  free_.push_back(trajectory);
}

void TrajectoryRuns::Extend(Handle trajectory, int64_t rows) {
  ++work_;
  Record& record = records_[trajectory];
  StopSliding(record.lane);
  Lane& lane = by_lane_[record.lane];
  // Rows that follow on the lane's newest row, of one trajectory, join its run.
  if (lane.runs.empty() || lane.runs.back().trajectory != trajectory) {
    AddRun(trajectory);
  }
  record.rows += rows;
  lane.end += rows;
}

void TrajectoryRuns::AddRun(Handle trajectory) {
  Record& record = records_[trajectory];
  Lane& lane = by_lane_[record.lane];
  const auto number = static_cast<uint32_t>(lane.first_run + lane.runs.size());
  lane.runs.push_back({.step = lane.end, .trajectory = trajectory});
  if (record.rows == 0) {
    record.first_run = record.last_run = number;
    record.first_step = lane.end;
    return;
  }
  // Runs of a trajectory are linked forwards only. A finger at every 32nd lets
  // a search by offset begin near its row.
  lane.runs[IndexOf(lane, record.last_run)].next = number;
  record.last_run = number;
  if (++record.runs_since_finger < kRunsPerFinger) return;
  record.runs_since_finger = 0;
  record.has_fingers = true;
  Fingers& fingers = fingers_[trajectory];
  fingers.list.push_back({.offset = fingers.gone + record.rows, .run = number});
}

TrajectoryRuns::Taken TrajectoryRuns::TakeFront(int64_t lane_number,
                                                int64_t most) {
  ++work_;
  StopSliding(lane_number);
  Lane& lane = by_lane_[lane_number];
  Run& run = lane.runs.front();
  const Taken taken = {.trajectory = run.trajectory,
                       .rows = std::min(most, EndOf(lane, 0) - run.step)};
  Record& record = records_[taken.trajectory];
  record.rows -= taken.rows;
  lane.begin += taken.rows;
  run.step += taken.rows;
  record.first_step = run.step;
  if (run.step == EndOf(lane, 0)) {
    // Valid only while rows are left; else the owner frees the record.
    record.first_run = run.next;
    lane.runs.pop_front();
    ++lane.first_run;
    if (record.rows > 0) {
      record.first_step = RunOf(lane, record.first_run).step;
    }
  }
  if (record.has_fingers && record.rows > 0) {
    // The first run needs no finger.
    Fingers& fingers = fingers_[taken.trajectory];
    // Offsets of fingers count from the row that was first once, so eviction
    // changes this one number and no finger.
    fingers.gone += taken.rows;
    while (fingers.head < fingers.list.size() &&
           fingers.list[fingers.head].offset <= fingers.gone) {
      ++fingers.head;
    }
    // Erased by halves, so that a finger is moved once on average.
    if (2 * fingers.head > fingers.list.size()) {
      fingers.list.erase(fingers.list.begin(),
                         fingers.list.begin() + fingers.head);
      fingers.head = 0;
    }
  }
  return taken;
}

void TrajectoryRuns::Slide(int64_t lane_number, int64_t rows) {
  work_ += 2;
  StopSliding(lane_number);
  Lane& lane = by_lane_[lane_number];
  Run& run = lane.runs.front();
  lane.begin += rows;
  lane.end += rows;
  run.step += rows;
  records_[run.trajectory].first_step = run.step;
  sliding_.Insert(lane_number, lane.end);
}

void TrajectoryRuns::StopSliding(int64_t lane_number) {
  if (!sliding_.Has(lane_number)) return;
  Lane& lane = by_lane_[lane_number];
  Run& run = lane.runs.front();
  lane.end = sliding_.end(lane_number);
  lane.begin = lane.end - lanes_.capacity;
  run.step = lane.begin;
  records_[run.trajectory].first_step = run.step;
  sliding_.Erase(lane_number);
}

TrajectoryRuns::Taken TrajectoryRuns::TakeBack(int64_t lane_number,
                                               int64_t most) {
  ++work_;
  StopSliding(lane_number);
  Lane& lane = by_lane_[lane_number];
  const Run& run = lane.runs.back();
  const Taken taken = {.trajectory = run.trajectory,
                       .rows = std::min(most, lane.end - run.step)};
  Record& record = records_[taken.trajectory];
  record.rows -= taken.rows;
  lane.end -= taken.rows;
  if (lane.end > run.step) return taken;
  // A run without rows goes; its trajectory may have others before it.
  const uint32_t number = record.last_run;
  lane.runs.pop_back();
  if (record.rows == 0) return taken;
  if (record.has_fingers) {
    Fingers& fingers = fingers_[taken.trajectory];
    if (fingers.head < fingers.list.size() &&
        fingers.list.back().run == number) {
      fingers.list.pop_back();
      record.runs_since_finger = kRunsPerFinger;
    }
  }
  // Its runs before the first finger may be fewer, where some were evicted.
  if (record.runs_since_finger > 0) --record.runs_since_finger;
  // The run before the last is not linked from it: found from the last finger
  // on, in at most as many steps as there are runs between fingers.
  RunPlace at =
      FingerBefore(taken.trajectory, [](const Finger&) { return true; });
  while (RunOf(lane, at.run).next != number) at = Next(lane, at);
  record.last_run = at.run;
  return taken;
}

int64_t TrajectoryRuns::StepOf(int64_t lane, Slot slot) const {
  const int64_t last = end(lane) - 1;
  // How many steps before the newest one this slot was written.
  const int64_t age = (last - lanes_.PositionOf(slot)) % lanes_.capacity;
  return last - (age < 0 ? age + lanes_.capacity : age);
}

TrajectoryRuns::Place TrajectoryRuns::PlaceOf(int64_t lane_number,
                                              int64_t step) const {
  const Lane& lane = by_lane_[lane_number];
  if (sliding_.Has(lane_number)) {
    return {.trajectory = lane.runs.front().trajectory,
            .offset = step - begin(lane_number)};
  }
  const size_t index = IndexAt(lane, step);
  const Run& run = lane.runs[index];
  const uint32_t number = lane.first_run + static_cast<uint32_t>(index);
  return {.trajectory = run.trajectory,
          .offset = OffsetOf(run.trajectory, number) + step - run.step};
}

int64_t TrajectoryRuns::LastStep(Handle trajectory) const {
  const Record& record = records_[trajectory];
  if (sliding_.Has(record.lane)) return sliding_.end(record.lane) - 1;
  const Lane& lane = by_lane_[record.lane];
  return EndOf(lane, IndexOf(lane, record.last_run)) - 1;
}

int64_t TrajectoryRuns::memory_bytes() const {
  size_t bytes = records_.size() * sizeof(Record) + free_.capacity() * 4 +
                 fingers_.capacity() * (1 + sizeof(Fingers) + sizeof(Handle)) +
                 static_cast<size_t>(sliding_.memory_bytes());
  for (const Lane& lane : by_lane_) {
    bytes += sizeof(Lane) + lane.runs.size() * sizeof(Run);
  }
  for (const auto& entry : fingers_) {
    bytes += entry.second.list.capacity() * sizeof(Finger);
  }
  return static_cast<int64_t>(bytes);
}

// Halving reads a run of another page at every step. Where trajectories are
// about as long as one another a run is where its step says, so the search
// starts there and widens.
size_t TrajectoryRuns::IndexAt(const Lane& lane, int64_t step) const {
  const auto is_behind = [&](size_t index) {
    ++work_;
    return lane.runs[index].step > step;
  };
  const size_t runs = lane.runs.size();
  const double share = static_cast<double>(step - lane.begin) /
                       static_cast<double>(lane.end - lane.begin);
  const size_t guess = std::min(
      static_cast<size_t>(share * static_cast<double>(runs)), runs - 1);
  size_t first = 0;    // Not behind.
  size_t last = runs;  // Behind, or the end.
  size_t width = 1;
  if (is_behind(guess)) {
    last = guess;
    while (width <= last && is_behind(last - width)) {
      last -= width;
      width *= 2;
    }
    if (width <= last) first = last - width;
  } else {
    first = guess;
    while (first + width < runs && !is_behind(first + width)) {
      first += width;
      width *= 2;
    }
    last = std::min(first + width, runs);
  }
  while (last - first > 1) {
    const size_t middle = first + (last - first) / 2;
    (is_behind(middle) ? last : first) = middle;
  }
  return first;
}

template <typename IsBefore>
TrajectoryRuns::RunPlace TrajectoryRuns::FingerBefore(
    Handle trajectory, IsBefore is_before) const {
  const Record& record = records_[trajectory];
  RunPlace place = {.run = record.first_run, .offset = 0};
  if (!record.has_fingers) return place;
  const Fingers& fingers = fingers_.find(trajectory)->second;
  const auto first = fingers.list.begin() + fingers.head;
  const auto after = std::partition_point(
      first, fingers.list.end(), [&](const Finger& finger) {
        ++work_;
        return is_before(Finger{finger.offset - fingers.gone, finger.run});
      });
  if (after == first) return place;
  return {.run = (after - 1)->run,
          .offset = (after - 1)->offset - fingers.gone};
}

TrajectoryRuns::RunPlace TrajectoryRuns::Next(const Lane& lane,
                                              const RunPlace& place) const {
  ++work_;
  const size_t index = IndexOf(lane, place.run);
  const Run& run = lane.runs[index];
  return {.run = run.next,
          .offset = place.offset + EndOf(lane, index) - run.step};
}

TrajectoryRuns::RunPlace TrajectoryRuns::Seek(Handle trajectory,
                                              int64_t offset) const {
  const Record& record = records_[trajectory];
  const Lane& lane = by_lane_[record.lane];
  RunPlace at = FingerBefore(trajectory, [&](const Finger& finger) {
    return finger.offset <= offset;
  });
  while (at.run != record.last_run) {
    const RunPlace next = Next(lane, at);
    if (next.offset > offset) break;
    at = next;
  }
  return at;
}

int64_t TrajectoryRuns::OffsetOf(Handle trajectory, uint32_t run) const {
  const Record& record = records_[trajectory];
  if (run == record.first_run) return 0;
  const Lane& lane = by_lane_[record.lane];
  // Run numbers wrap around at 2^32, so they are compared as indices in the
  // lane.
  const size_t index = IndexOf(lane, run);
  RunPlace at = FingerBefore(trajectory, [&](const Finger& finger) {
    return IndexOf(lane, finger.run) <= index;
  });
  while (at.run != run) at = Next(lane, at);
  return at.offset;
}

}  // namespace rill::samplers_internal
