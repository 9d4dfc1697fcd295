// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_CONFORMANCE_STORAGE_SIMULATOR_H_
#define RILL_SAMPLERS_CONFORMANCE_STORAGE_SIMULATOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {

// A storage without bytes: keeps cursors, emits the write events that a storage
// emits, and knows by plain bookkeeping which slots are live and how often each
// was written. Every 7th step of a lane ends an episode. The oracle of
// samplers/conformance; also for the tests of one sampler.
//
// A write may be held open between Begin... and Finish, as other threads see
// it: its old rows are retired, its new ones are not there yet. Arguments are
// the test's own and not checked.
//
// Thread-safety: thread-compatible.
class StorageSimulator {
 public:
  explicit StorageSimulator(const Lanes& lanes);

  // As Storage::AddObserver: attaches at once.
  void AddObserver(WriteObserver* observer);

  // Appends `steps` to each of lanes [first_lane, first_lane + num_lanes); of
  // more steps than a lane holds only the last are written. `priorities`: one
  // value a written row, lane after lane, or empty.
  void BeginAppend(int64_t first_lane, int64_t num_lanes, int64_t steps,
                   absl::Span<const double> priorities = {});
  void Append(int64_t first_lane, int64_t num_lanes, int64_t steps,
              absl::Span<const double> priorities = {}) {
    BeginAppend(first_lane, num_lanes, steps, priorities);
    Finish();
  }
  // To all lanes.
  void Append(int64_t steps) { Append(0, lanes_.count, steps); }

  // Writes live slots in place; each is named once. A part of them, or
  // `replaces` them by others.
  void BeginOverwrite(absl::Span<const Slot> slots, bool replaces = false);
  void Overwrite(absl::Span<const Slot> slots, bool replaces = false) {
    BeginOverwrite(slots, replaces);
    Finish();
  }

  // Publishes the write that is open.
  void Finish();

  void Clear();

  // All rows are taken for new ones, as after a storage's Load.
  void AttachAgain();

  const Lanes& lanes() const { return lanes_; }
  // Rows that may be drawn, in the order of their slots.
  std::vector<Slot> Live() const;
  bool IsLive(Slot slot) const {
    return slot >= 0 && slot < lanes_.num_slots() && live_[slot];
  }
  // How often the slot was written before the row that is there; that of the
  // coming row while the slot is being written in place.
  int64_t Generation(Slot slot) const { return times_written_[slot] - 1; }

 private:
  void Attach(WriteObserver* observer) const;
  std::vector<uint8_t> EndsOf(absl::Span<const SlotRange> ranges) const;
  // The slots of `count` steps of a lane, oldest first.
  void AddRows(int64_t lane, int64_t first_step, int64_t count,
               std::vector<SlotRange>* ranges) const;
  void Retire();
  WriteEvent Event() const;

  Lanes lanes_;
  std::vector<int64_t> written_;  // Steps ever appended, one a lane.
  std::vector<bool> live_;        // One a slot, like all below.
  std::vector<int64_t> times_written_;
  std::vector<uint8_t> is_end_;
  std::vector<WriteObserver*> observers_;

  // The write that is open.
  bool is_append_ = true;
  bool is_replacement_ = false;
  std::vector<SlotRange> ranges_;
  std::vector<SlotRange> retired_;
  std::vector<double> priorities_;
  std::vector<uint8_t> ends_;
  std::vector<uint8_t> begins_cut_;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_CONFORMANCE_STORAGE_SIMULATOR_H_
