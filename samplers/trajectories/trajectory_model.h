// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_MODEL_H_
#define RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_MODEL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// A storage without bytes that knows its trajectories the slow and obvious way.
// Each lane is a list of rows, and a look at all of them tells which belong
// together. Sends the events that a storage sends; several appends and writes
// in place may be in flight. The trajectory index is compared with it.
//
// Arguments are the test's own and not checked.
// Thread-safety: thread-compatible.
class TrajectoryModel {
 public:
  struct Value {
    bool is_end = false;
    int64_t id = 0;
  };
  struct Trajectory {
    int64_t lane = 0;
    std::optional<int64_t> id = std::nullopt;
    bool is_closed = false;
    bool is_cut = false;
    std::vector<Slot> slots;
  };
  // Which of the values writes tell.
  struct Told {
    bool ends = true;
    bool ids = true;
  };

  TrajectoryModel(const Lanes& lanes, Told told);

  void AddObserver(WriteObserver* observer) {
    Attach(observer);
    GoOn(observer);
  }
  // First part of AddObserver: the observer receives the rows that are there.
  void Attach(WriteObserver* observer) const;
  // Second part: it is notified of writes from now on.
  void GoOn(WriteObserver* observer) { observers_.push_back(observer); }

  // Appends to one lane after the other; `next` makes the values, oldest row
  // first. The rows that it overwrites go at once, the new ones come with the
  // FinishAppend that belongs to it: the first one to the first append.
  void BeginAppend(int64_t first_lane, int64_t num_lanes, int64_t steps,
                   const std::function<Value(int64_t lane)>& next);
  void FinishAppend();
  void Append(int64_t first_lane, int64_t num_lanes, int64_t steps,
              const std::function<Value(int64_t lane)>& next) {
    BeginAppend(first_lane, num_lanes, steps, next);
    FinishAppend();
  }
  // One lane, values given.
  void Append(int64_t lane, const std::vector<Value>& values);

  // Slots are live; one may be named twice.
  void BeginInPlace(std::vector<Slot> slots, std::vector<Value> values,
                    Told told);
  void FinishInPlace();
  void WriteInPlace(std::vector<Slot> slots, std::vector<Value> values,
                    Told told) {
    BeginInPlace(std::move(slots), std::move(values), told);
    FinishInPlace();
  }
  void FinishAll();
  void Clear();

  const Lanes& lanes() const { return lanes_; }
  int64_t appends_in_flight() const {
    return static_cast<int64_t>(appends_.size());
  }
  int64_t in_place_in_flight() const {
    return static_cast<int64_t>(in_place_.size());
  }
  // Whether an append of so many steps would overwrite rows in flight.
  bool IsBlocked(int64_t first_lane, int64_t num_lanes, int64_t steps) const;
  // Lane after lane, oldest first.
  std::vector<Slot> Live() const;
  std::vector<Slot> LiveOf(int64_t lane) const;
  // By lane and first row.
  std::vector<Trajectory> Trajectories() const;

 private:
  struct Row {
    int64_t step = 0;
    std::optional<int64_t> id = std::nullopt;
    bool is_end = false;
    // Its trajectory had rows before it that are gone.
    bool is_after_gap = false;
  };
  struct Lane {
    std::deque<Row> rows;
    int64_t begun = 0;          // Steps that appends have begun to write.
    int64_t in_flight = 0;      // Rows of appends that are not there yet.
    std::optional<Row> newest;  // That was ever there.
  };
  struct Write {
    WriteEvent event;
    std::vector<SlotRange> retired, written;
    std::vector<uint8_t> ends;
    std::vector<int64_t> ids;
    std::vector<uint8_t> begins_cut;
    std::vector<std::pair<int64_t, Row>> rows;  // Lane, row.
  };

  void AddRanges(int64_t lane, int64_t step, int64_t count,
                 std::vector<SlotRange>* ranges) const;
  void Tell(Write* write, Told told) const;
  void Publish(int64_t lane, const Row& row);
  // Rows of each trajectory of a lane, as indices.
  std::vector<std::vector<size_t>> Group(const Lane& lane) const;
  void ForgetJoinedGaps(Lane* lane) const;
  Slot SlotOf(int64_t lane, int64_t step) const {
    return lanes_.SlotOf(lane, step % lanes_.capacity);
  }

  Lanes lanes_;
  Told told_;
  std::vector<Lane> by_lane_;
  std::vector<WriteObserver*> observers_;
  std::deque<Write> appends_, in_place_;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_MODEL_H_
