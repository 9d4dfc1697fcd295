// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_TESTING_STORAGE_MODEL_H_
#define RILL_SLOTS_TESTING_STORAGE_MODEL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// A storage without bytes, the slow and obvious way, for tests of what observes
// a storage. Each lane is a list of its live rows, and a look at all of them
// tells which belong to one trajectory. It sends the events that a storage
// sends; several appends and writes in place may be in flight.
//
// Arguments are the test's own and not checked.
// Thread-safety: thread-compatible.
// Cost: O(1) a row of an append, O(rows of a lane) a write in place.
class StorageModel {
 public:
  struct Value {
    bool is_end = false;
    int64_t id = 0;
    // Told where all rows of an append have one.
    std::optional<double> priority = std::nullopt;
  };
  struct Trajectory {
    int64_t lane = 0;
    std::optional<int64_t> id = std::nullopt;
    bool is_closed = false;
    bool is_cut = false;  // Its first rows are gone.
    std::vector<Slot> slots;
  };
  // Which of the values writes tell.
  struct Told {
    bool ends = true;
    bool ids = true;
  };
  static constexpr Told kNothing = {.ends = false, .ids = false};
  enum class InPlace { kPart, kPatch, kReplacement };

  StorageModel(const Lanes& lanes, Told told);

  void AddObserver(WriteObserver* observer) {
    Attach(observer);
    GoOn(observer);
  }
  // First part of AddObserver: the observer receives the rows that are there.
  void Attach(WriteObserver* observer) const;
  // Second part: it is notified of writes from now on.
  void GoOn(WriteObserver* observer) { observers_.push_back(observer); }
  // To all observers, as after a Load: rows that are there count as new ones.
  void AttachAgain();

  // Appends counts[i] rows to lane first_lane + i; of more rows than a lane
  // holds the last ones stay. `next` makes the values, lane after lane, oldest
  // row first. The rows that it overwrites go at once, the new ones come with
  // the FinishAppend that belongs to it: the first one to the first append.
  using NextValue = std::function<Value(int64_t lane)>;
  void BeginAppend(int64_t first_lane, const std::vector<int64_t>& counts,
                   const NextValue& next);
  void BeginAppend(const std::vector<int64_t>& counts) {
    BeginAppend(0, counts, [](int64_t) { return Value(); });
  }
  void FinishAppend();
  void Append(int64_t first_lane, int64_t num_lanes, int64_t steps,
              const NextValue& next) {
    BeginAppend(first_lane, std::vector<int64_t>(num_lanes, steps), next);
    FinishAppend();
  }
  // To one lane, values given.
  void Append(int64_t lane, const std::vector<Value>& values);
  // To all lanes; `between` runs before the rows are there.
  void Append(const std::vector<int64_t>& counts,
              const std::function<void()>& between) {
    BeginAppend(counts);
    between();
    FinishAppend();
  }

  // Slots are live; one may be named twice. Values that are not told stay.
  void BeginInPlace(const std::vector<Slot>& slots,
                    const std::vector<Value>& values, Told told,
                    InPlace kind = InPlace::kPart);
  void FinishInPlace();
  void WriteInPlace(const std::vector<Slot>& slots,
                    const std::vector<Value>& values, Told told) {
    BeginInPlace(slots, values, told);
    FinishInPlace();
  }
  void WriteInPlace(const std::vector<Slot>& slots,
                    const std::function<void()>& between,
                    InPlace kind = InPlace::kPart) {
    BeginInPlace(slots, std::vector<Value>(slots.size()), kNothing, kind);
    between();
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
  // How many rows an append may add to a lane beside those in flight.
  int64_t Room(int64_t lane) const {
    return lanes_.capacity - by_lane_[lane].in_flight;
  }
  // Whether an append of so many steps would overwrite rows in flight.
  bool IsBlocked(int64_t first_lane, int64_t num_lanes, int64_t steps) const;
  // Rows that were appended to the lane, those in flight included.
  int64_t begun(int64_t lane) const { return by_lane_[lane].begun; }
  // How often the slot was written, a write in place from its begin on.
  int64_t writes(Slot slot) const { return writes_[slot]; }
  bool IsLive(Slot slot) const;
  bool is_end(Slot slot) const;  // `slot` is live.
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
    std::optional<double> priority = std::nullopt;
    // Its trajectory had rows before it that are gone.
    bool is_after_gap = false;
  };
  struct Lane {
    std::deque<Row> rows;       // Of consecutive steps.
    int64_t begun = 0;          // Steps that appends have begun to write.
    int64_t in_flight = 0;      // Rows of appends that are not there yet.
    std::optional<Row> newest;  // That was ever there.
  };
  struct Write {
    WriteEvent event;
    std::vector<SlotRange> retired, written;
    std::vector<uint8_t> ends;
    std::vector<int64_t> ids;
    std::vector<double> priorities;
    std::vector<uint8_t> begins_cut;
    std::vector<std::pair<int64_t, Row>> rows;  // Lane, row.
  };

  void AddRanges(int64_t lane, int64_t step, int64_t count,
                 std::vector<SlotRange>* ranges) const;
  void AddRows(int64_t lane, int64_t count, bool any_dropped,
               const NextValue& next, Write* write) const;
  void RetireFor(int64_t lane, int64_t kept, Write* write);
  void Tell(Write* write, Told told) const;
  void Publish(int64_t lane, const Row& row);
  // Rows of each trajectory of a lane, as indices.
  std::vector<std::vector<size_t>> Group(const Lane& lane) const;
  const Row* Find(Slot slot) const;  // Null where it is not live.
  Slot SlotOf(int64_t lane, int64_t step) const {
    return lanes_.SlotOf(lane, step % lanes_.capacity);
  }

  Lanes lanes_;
  Told told_;
  std::vector<Lane> by_lane_;
  std::vector<int64_t> writes_;  // One a slot.
  std::vector<WriteObserver*> observers_;
  std::deque<Write> appends_, in_place_;
};

}  // namespace rill

#endif  // RILL_SLOTS_TESTING_STORAGE_MODEL_H_
