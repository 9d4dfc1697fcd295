// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_TIERED_TIER_MAP_H_
#define RILL_STORAGE_TIERED_TIER_MAP_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {

// Which rows of a storage a smaller one above it, with rings as many, has too:
// of each lane some of the newest. Numbers only.
//
// A row is the fast tier's from the time that it was written there until just
// before a write begins that takes its place in either tier. So a reader asks
// SplitRead, copies, and then asks FindLost. The hits that FindLost does not
// name are the rows that it wanted.
//
// Thread-safety: thread-safe; changes are made by one thread at a time.
// Cost: O(slots) for reads, O(lanes written) for appends.
class TierMap {
 public:
  // The tiers of the rows of a read. Reusable.
  struct Split {
    // One for each slot that was asked for: that of the fast tier; where it
    // does not have the row, some other that it has, if it has any.
    std::vector<Slot> fast_slots;
    // The rows that it has: number among those asked for, slot, lane, step.
    struct Hit {
      int64_t place = 0;
      Slot slot = 0;
      int64_t lane = 0;
      int64_t step = 0;
    };
    std::vector<Hit> hits;
    // The rows that it does not have: numbers and slots of the storage below.
    std::vector<int64_t> missing;
    std::vector<Slot> missing_slots;

   private:
    friend class TierMap;
    int64_t version_ = 0;
  };

  // `fast_capacity` slots in each lane of the fast tier, in [1,
  // below.capacity].
  TierMap(const Lanes& below, int64_t fast_capacity);

  // Slots that are none, or not live, are missing.
  void SplitRead(absl::Span<const Slot> slots, Split* split) const;
  // Turns `missing` into those hits that the fast tier may have lost since, or
  // `all` where it could not be read.
  void FindLost(Split* split, bool all) const;

  // Appends `steps` > 0 to `count` lanes from `first` on. Begin before the
  // storage below gets the rows. End when both tiers have them, or cancel when
  // neither has.
  void BeginAppend(int64_t first, int64_t count, int64_t steps);
  void EndAppend(int64_t first, int64_t count, int64_t steps);
  void CancelAppend(int64_t first);
  // Rows are written over in place: while that goes on the fast tier has none.
  void BeginPatch();
  void EndPatch();
  // The fast tier has nothing.
  void Forget();
  // And was cleared since, and the next step of each lane is this one.
  void Restart(absl::Span<const Cursor> cursors);

 private:
  struct Lane {
    int64_t written = 0;    // Steps that both tiers have seen.
    int64_t rows = 0;       // The newest of these, the fast tier has.
    int64_t next = 0;       // Position of step `written` below,
    int64_t fast_next = 0;  // and in the fast tier.
  };

  const Lanes below_;
  const Lanes fast_;

  mutable absl::Mutex mutex_;
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> rows_before_ ABSL_GUARDED_BY(mutex_);  // The append.
  bool is_patching_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_TIERED_TIER_MAP_H_
