// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_RING_WRITE_SCRATCH_H_
#define RILL_STORAGE_RING_WRITE_SCRATCH_H_

#include <memory>
#include <vector>

#include "rill/slots/slot.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/sharing/writes_in_flight.h"

namespace rill::storage_internal {

// Memory of one write.
struct WriteScratch {
  BatchLeaves leaves;
  AppendPlan plan;
  std::vector<Slot> slots;
  std::vector<SlotRange> announced;
  std::vector<LeafBatch> places;
  WriteEventBuilder event;
  WritesInFlight::Write write;
  // Facts of a write in place; see WriteEvent.
  bool is_patch = false;
  bool is_replacement = false;
  bool has_failed = false;  // After rows were retired.
};

// A WriteScratch of the calling thread, kept for its next write, so that steady
// writing allocates nothing.
// Thread-safety: thread-compatible; ends on the thread that made it.
class ThreadWriteScratch {
 public:
  ThreadWriteScratch();
  ~ThreadWriteScratch();
  ThreadWriteScratch(const ThreadWriteScratch&) = delete;
  ThreadWriteScratch& operator=(const ThreadWriteScratch&) = delete;

  WriteScratch& operator*() const { return *scratch_; }
  WriteScratch* operator->() const { return scratch_.get(); }

 private:
  std::unique_ptr<WriteScratch> scratch_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_RING_WRITE_SCRATCH_H_
