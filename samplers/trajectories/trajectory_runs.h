// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_RUNS_H_
#define RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_RUNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "rill/samplers/trajectories/chunked_array.h"
#include "rill/samplers/trajectories/sliding_lanes.h"
#include "rill/slots/slot.h"

namespace rill::samplers_internal {

// The rows of trajectories as runs: pieces of consecutive steps of a lane. Each
// live step is in exactly one run, and each run of one trajectory. Rows come at
// the end of a lane and go at either end. Knows nothing of why; the trajectory
// index does.
//
// A full lane whose rows are one run mostly loses as many as it gets. Such
// lanes may slide (SlidingLanes): lanes in step move together, and nothing of
// them is looked at.
//
// Thread-safety: thread-compatible.
// Cost: a change of a run O(1); finding a row O(log runs of the lane). 40 bytes
//   a trajectory, 16.5 a run, also while they grow: nothing is moved.
class TrajectoryRuns {
 public:
  using Handle = int32_t;  // Names a trajectory until it is freed.

  struct Record {
    int64_t id = 0;
    int64_t rows = 0;
    // Step of the first row, so that a trajectory of one run is found without
    // looking at the run. Not of a lane that slides.
    int64_t first_step = 0;
    uint32_t first_run = 0;
    uint32_t last_run = 0;
    int32_t lane = 0;
    uint8_t runs_since_finger = 0;
    bool has_fingers : 1 = false;
    // These and `id` are the owner's.
    bool has_id : 1 = false;
    bool is_closed : 1 = false;
    bool is_cut : 1 = false;
  };
  static_assert(sizeof(Record) == 40);

  // Rows of one trajectory, of one run.
  struct Taken {
    Handle trajectory = 0;
    int64_t rows = 0;
  };

  // A row of a trajectory; offset 0 is its first one.
  struct Place {
    Handle trajectory = 0;
    int64_t offset = 0;
  };

  // No lanes where they are unknown.
  void Reset(const Lanes& lanes, int64_t num_lanes);

  // --- Writing ---------------------------------------------------------------

  // Moves the end of a lane without rows on.
  void Skip(int64_t lane, int64_t steps);
  // A trajectory without rows, which the next call gives some.
  Handle Make(int64_t lane);
  // Gives a trajectory the next rows of its lane.
  void Extend(Handle trajectory, int64_t rows);
  // Takes rows off the front, or the end, of a lane that has some: up to
  // `most`, all of one run. A trajectory that has none left is to be freed.
  Taken TakeFront(int64_t lane, int64_t most);
  Taken TakeBack(int64_t lane, int64_t most);
  void Free(Handle trajectory);
  // As TakeFront and Extend of so many rows, for a full lane whose rows are one
  // run of more rows (OnlyRun). From then on the lane slides, if its neighbours
  // are in step.
  void Slide(int64_t lane, int64_t rows);
  // Any other write does so by itself.
  void StopSliding(int64_t lane);

  // --- Reading ---------------------------------------------------------------

  const Lanes& lanes() const { return lanes_; }
  int64_t num_lanes() const { return static_cast<int64_t>(by_lane_.size()); }
  int64_t num_trajectories() const {
    return static_cast<int64_t>(records_.size() - free_.size());
  }
  // One past the greatest handle.
  int64_t num_handles() const { return static_cast<int64_t>(records_.size()); }
  // Its rows are 0 where it was freed.
  const Record& at(Handle trajectory) const { return records_[trajectory]; }
  Record& at(Handle trajectory) { return records_[trajectory]; }

  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch(Handle trajectory) const {
    const Record* const record = &records_[trajectory];
    __builtin_prefetch(record);
    // It may begin in one line and end in the next.
    __builtin_prefetch(reinterpret_cast<const char*>(record + 1) - 1);
  }

  // The lanes that slide. To slide all neighbours is Slide of each.
  SlidingLanes& sliding() { return sliding_; }
  // The trajectory whose rows all those of a lane are, one run of them; else
  // -1.
  Handle OnlyRun(int64_t lane) const {
    const Lane& it = by_lane_[lane];
    return it.runs.size() == 1 ? it.runs.front().trajectory : -1;
  }
  // The first run of a lane that has rows and does not slide: whose it is, and
  // its rows.
  Taken FirstRun(int64_t lane) const {
    const Lane& it = by_lane_[lane];
    return {.trajectory = it.runs.front().trajectory,
            .rows = EndOf(it, 0) - it.begin};
  }
  // Has what writes look at fetched: a lane; the first run of one that was
  // fetched before; what tells of the trajectory of a run that was.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchLanes(int64_t lane, int64_t run_of,
                                                  int64_t record_of) const {
    const char* const at = reinterpret_cast<const char*>(&by_lane_[lane]);
    __builtin_prefetch(at, /*rw=*/1);
    __builtin_prefetch(at + sizeof(Lane) - 1, /*rw=*/1);
    if (const auto& runs = by_lane_[run_of].runs; !runs.empty()) {
      __builtin_prefetch(&runs.front(), /*rw=*/1);
    }
    if (const auto& runs = by_lane_[record_of].runs; !runs.empty()) {
      Prefetch(runs.front().trajectory);
    }
  }

  // Live steps of a lane; modulo the capacity where steps were skipped unseen.
  int64_t begin(int64_t lane) const {
    return sliding_.Has(lane) ? sliding_.end(lane) - lanes_.capacity
                              : by_lane_[lane].begin;
  }
  int64_t end(int64_t lane) const {
    return sliding_.Has(lane) ? sliding_.end(lane) : by_lane_[lane].end;
  }
  // The step of a slot of that lane; below begin() where it holds no live row.
  int64_t StepOf(int64_t lane, Slot slot) const;
  Slot SlotOf(int64_t lane, int64_t step) const {
    return lanes_.SlotOf(lane, step % lanes_.capacity);
  }

  // `step` is live.
  Place PlaceOf(int64_t lane, int64_t step) const;
  // The step of a trajectory's last row.
  int64_t LastStep(Handle trajectory) const;
  int64_t FirstStep(Handle trajectory) const {
    const Record& record = records_[trajectory];
    return sliding_.Has(record.lane) ? begin(record.lane) : record.first_step;
  }
  // Calls fn(first step, count) for rows [offset, offset + count) of a
  // trajectory, which has them; a run at a time.
  template <typename Fn>
  void ForEachRun(Handle trajectory, int64_t offset, int64_t count,
                  Fn fn) const;
  // Calls fn(place of the first, first step, count) for the live steps
  // [begin, end) of a lane, a run at a time.
  template <typename Fn>
  void ForEachPiece(int64_t lane, int64_t begin, int64_t end, Fn fn) const;

  // How many runs and fingers were looked at or changed, ever.
  int64_t work() const { return work_; }
  int64_t memory_bytes() const;

 private:
  // Runs of a lane are numbered in order, modulo 2^32.
  struct Run {
    int64_t step = 0;  // Its first one; it ends where the next run begins.
    Handle trajectory = 0;
    uint32_t next = 0;  // The trajectory's next run, but for its last.
  };
  static_assert(sizeof(Run) == 16);
  // A lane that slides has the steps here that it had before it began to.
  struct Lane {
    std::deque<Run> runs;
    // The number of runs.front(). Begins shortly before it wraps around, so
    // that tests see that.
    uint32_t first_run = uint32_t{0} - 50;
    int64_t begin = 0;
    int64_t end = 0;
  };
  // Every 32nd run of a trajectory of many, to find its rows by halving.
  // Offsets count from the row that was first when the first finger was made.
  struct Finger {
    int64_t offset = 0;
    uint32_t run = 0;
  };
  struct Fingers {
    int64_t gone = 0;  // The offset of the first row.
    std::vector<Finger> list;
    size_t head = 0;  // Those before went with their runs.
  };
  // A run, and the offset of its first row.
  struct RunPlace {
    uint32_t run = 0;
    int64_t offset = 0;
  };

  static size_t IndexOf(const Lane& lane, uint32_t run) {
    return static_cast<uint32_t>(run - lane.first_run);
  }
  static const Run& RunOf(const Lane& lane, uint32_t run) {
    return lane.runs[IndexOf(lane, run)];
  }
  // One past the last step of lane.runs[index].
  static int64_t EndOf(const Lane& lane, size_t index) {
    return index + 1 < lane.runs.size() ? lane.runs[index + 1].step : lane.end;
  }
  size_t IndexAt(const Lane& lane, int64_t step) const;
  // The last finger that `is_before(finger)` holds of, as a place; the first
  // run where there is none.
  template <typename IsBefore>
  RunPlace FingerBefore(Handle trajectory, IsBefore is_before) const;
  RunPlace Next(const Lane& lane, const RunPlace& place) const;
  RunPlace Seek(Handle trajectory, int64_t offset) const;
  int64_t OffsetOf(Handle trajectory, uint32_t run) const;
  void AddRun(Handle trajectory);

  Lanes lanes_;
  std::vector<Lane> by_lane_;
  SlidingLanes sliding_;
  ChunkedArray<Record> records_;
  std::vector<Handle> free_;
  absl::flat_hash_map<Handle, Fingers> fingers_;  // Of those of many runs.
  mutable int64_t work_ = 0;
};

template <typename Fn>
void TrajectoryRuns::ForEachRun(Handle trajectory, int64_t offset,
                                int64_t count, Fn fn) const {
  if (count <= 0) return;
  const Record& record = records_[trajectory];
  if (record.first_run == record.last_run) {
    fn(FirstStep(trajectory) + offset, count);
    return;
  }
  const Lane& lane = by_lane_[record.lane];
  RunPlace at = Seek(trajectory, offset);
  while (true) {
    const size_t index = IndexOf(lane, at.run);
    const int64_t first = lane.runs[index].step + (offset - at.offset);
    const int64_t piece = std::min(count, EndOf(lane, index) - first);
    fn(first, piece);
    offset += piece;
    count -= piece;
    if (count == 0) return;
    at = Next(lane, at);
  }
}

template <typename Fn>
void TrajectoryRuns::ForEachPiece(int64_t lane_number, int64_t begin,
                                  int64_t end, Fn fn) const {
  if (begin >= end) return;
  const Lane& lane = by_lane_[lane_number];
  if (sliding_.Has(lane_number)) {
    fn(Place{lane.runs.front().trajectory, begin - this->begin(lane_number)},
       begin, end - begin);
    return;
  }
  for (size_t index = IndexAt(lane, begin); begin < end; ++index) {
    const Run& run = lane.runs[index];
    const int64_t stop = std::min(end, EndOf(lane, index));
    const uint32_t number = lane.first_run + static_cast<uint32_t>(index);
    const int64_t offset = OffsetOf(run.trajectory, number);
    fn(Place{run.trajectory, offset + begin - run.step}, begin, stop - begin);
    begin = stop;
  }
}

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_RUNS_H_
