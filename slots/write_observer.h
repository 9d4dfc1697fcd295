// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_WRITE_OBSERVER_H_
#define RILL_SLOTS_WRITE_OBSERVER_H_

#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"

namespace rill {

// One write to a storage. The spans live for the call only.
//
// Order: after an append `written` and `retired` list lane after lane, and
// within a lane oldest first (two ranges where the ring wraps). After a write
// in place they have the order of the call. A slot may be named twice; the
// later value counts. The per-row spans have one value for each written slot in
// that same order, or are empty where the storage was not told of such a key.
struct WriteEvent {
  // True: rows were appended behind the cursors. False: live rows were written
  // over in place (cursors, ages and counts stay).
  bool is_append = true;
  // For a write in place: the rows stay the same ones, generations too.
  bool is_patch = false;
  // In place: the write held every key, so that these are other rows, in age
  // and priority too. Else what is not told of them is as it was.
  bool is_replacement = false;
  absl::Span<const SlotRange> retired;  // Rows that lose their old content.
  absl::Span<const SlotRange> written;
  // The same as blocks, or none where the storage does not know them: what
  // LaneBlocks takes.
  absl::Span<const LaneBlock> retired_blocks = {};
  absl::Span<const LaneBlock> written_blocks = {};
  absl::Span<const uint8_t> ends;  // 1: last step of a trajectory.
  absl::Span<const int64_t> trajectory_ids;
  absl::Span<const double> priorities;  // Given by the writer.
  absl::Span<const int64_t> policy_versions;
  // For an append that is longer than its lane, so that the front of the batch
  // is dropped. 1 for the first row of a trajectory (of one lane and id) that
  // had rows there. Empty where no row was dropped.
  absl::Span<const uint8_t> begins_cut;
};

// The values of events that an observer reads. A storage may leave out those
// that none of its observers does: on a device they cost a wait.
struct ValuesRead {
  bool trajectories = true;  // ends, trajectory_ids, begins_cut.
  bool priorities = true;
  bool policy_versions = true;

  ValuesRead operator|(const ValuesRead& other) const {
    return {trajectories || other.trajectories, priorities || other.priorities,
            policy_versions || other.policy_versions};
  }
  // None of them.
  static constexpr ValuesRead None() { return {false, false, false}; }
};

// Sees every write of a storage, in order, under the storage's publish lock.
// Implementations must be short (but for BeforeOverwrite), must not call the
// storage back, and cannot fail. One that throws gets OnClear, and is attached
// anew behind the write, which stays as it is. The trajectory index, the sum
// tree and the generations are observers; two buffers on one storage each
// register their own.
//
// Several writes may be in flight. Between OnRetire and OnWrite of one append
// there may be events of others (retire A, retire B, write A, write B), but not
// of its own rows. The appends of one lane are published in the order in which
// they retired.
//
// Thread-safety: calls never overlap one another, but for BeforeOverwrite. An
// implementation guards itself what it shares with other threads (a sampler's
// Plan).
class WriteObserver {
 public:
  virtual ~WriteObserver() = default;

  // The same at each call during a write.
  virtual ValuesRead values_read() const { return {}; }
  // Called once on registration, and again when the storage learns its lanes
  // (a lazy storage at its first write). `cursors` has one entry a lane, none
  // while the lanes are unknown. Where they imply live rows, one OnWrite with
  // all of them (oldest first in each lane) follows at once.
  virtual void OnAttach(const Lanes& lanes,
                        absl::Span<const Cursor> cursors) = 0;
  // Before the bytes of `event.retired` change: stop drawing those slots.
  virtual void OnRetire(const WriteEvent& event) = 0;
  // Bytes of an append's rows change next: `rows`, sorted and apart, of which
  // the first `done` have changed. Returns how many of those behind may, one at
  // least, after waiting until that is so. Storages that say so ask
  // (Storage::asks_before_overwriting), after OnRetire, on the thread that
  // writes. The publish lock is not held: calls for several writes may overlap,
  // with other calls too. No reader waits for that write meanwhile. Other
  // writes may, and so may calls that clear, save or load the storage or change
  // its observers. The event that is waited for must not need any of these.
  // Must not throw.
  virtual int64_t BeforeOverwrite(absl::Span<const SlotRange> /*rows*/,
                                  int64_t /*done*/) {
    return std::numeric_limits<int64_t>::max();
  }
  // After the bytes of `event.written` are in place: they may be drawn.
  virtual void OnWrite(const WriteEvent& event) = 0;
  // All rows are gone, cursors are 0.
  virtual void OnClear() = 0;
};

}  // namespace rill

#endif  // RILL_SLOTS_WRITE_OBSERVER_H_
