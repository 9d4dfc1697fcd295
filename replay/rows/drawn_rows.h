// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_DRAWN_ROWS_H_
#define RILL_REPLAY_ROWS_DRAWN_ROWS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"

namespace rill::replay_internal {

// Rows that an append is about to overwrite, at the latest: the next `steps` of
// lanes [first_lane, first_lane + num_lanes), as their cursors stood before it.
struct AppendWindow {
  Lanes lanes;
  int64_t first_lane = 0;
  int64_t num_lanes = 0;
  int64_t steps = 0;
  std::vector<Cursor> cursors = {};  // Of all lanes, read after BeginWrite.

  // Those that will be retired.
  int64_t rows() const { return num_lanes * std::min(steps, lanes.capacity); }
};

// Keeps the rows of a batch between its draw and its gather. A write that would
// overwrite one waits for the gather. No batch is drawn between the moment a
// write has seen that it may go and the moment its rows are retired. Draws and
// writes hold its ticket one after the other, in the order they come. The work
// between retiring and publishing, and every gather, goes on side by side.
//
//   Draws:   BeginDraw, then for each Sampler::Plan and Hold(plan), EndDraw;
//            gather, Release(plan).
//   A write: BeginWrite, WillRetire or WaitFor..., Storage::Extend (whose
//            OnRetire or OnWrite calls Retired), EndWrite.
//
// Where the storage asks before it overwrites (BeforeOverwrite), WillRetire
// does: the write then waits behind retiring, for the rows that it overwrites
// next, and the ticket has gone on. Elsewhere it waits for all of them first.
//
// A write may wait for a gather while it has its ticket. So a thread that waits
// for the ticket must not hold what a gather needs. That is why several batches
// are drawn in one ticket.
//
// Thread-safety: thread-safe. The calls of one ticket to draw, or one write,
// come
//   from one thread; Release from any.
class DrawnRows {
 public:
  // `before_waiting` is called by a write that is about to wait for gathers, so
  // that somebody does them; null: they come by themselves.
  explicit DrawnRows(std::function<void()> before_waiting = nullptr)
      : before_waiting_(std::move(before_waiting)) {}

  void BeginDraw() ABSL_LOCKS_EXCLUDED(mutex_) { TakeTicket(); }
  // `drawn` is held until Release.
  void Hold(const SamplePlan* drawn);
  void EndDraw();
  void Release(const SamplePlan* drawn);

  void BeginWrite();
  // True where there is a held plan, so that a window must be told.
  bool HoldsAny() const;
  // Waits until no held plan has a row of the window / of `slots`. To be called
  // between BeginWrite and the write. `steps` of writes that are in flight
  // count into the window.
  void WaitForRows(AppendWindow window);
  void WaitForRows(absl::Span<const Slot> slots);
  // The write retires so many rows, and BeforeOverwrite waits.
  void WillRetire(int64_t rows);
  // As WriteObserver's.
  int64_t BeforeOverwrite(absl::Span<const SlotRange> rows, int64_t done);
  // Waits until no plan is held, and keeps the ticket until EndWrite: for a
  // write whose rows are not known before, or that retires several times.
  void WaitForAll();
  // So many of the write's rows are retired: from the storage's event, on the
  // thread that writes. With the last of them the ticket goes on. Nothing where
  // this thread has no write here.
  void Retired(int64_t rows);
  // `steps` as in its window.
  void EndWrite(int64_t steps);

 private:
  void TakeTicket() ABSL_LOCKS_EXCLUDED(mutex_);
  // `is_free` becomes true when plans are released.
  template <typename IsFree>
  void AwaitGathers(const IsFree& is_free)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void()> before_waiting_;
  mutable absl::Mutex mutex_;
  std::atomic<uint64_t> next_ticket_ = 0;
  std::atomic<uint64_t> serving_ = 0;               // Written with mutex_ held.
  std::thread::id writer_ ABSL_GUARDED_BY(mutex_);  // Whose ticket it is.
  bool keeps_ticket_ ABSL_GUARDED_BY(mutex_) = false;
  // Rows of its write that are still to retire. An ensemble of storages reports
  // the rows of one member after those of another.
  int64_t rows_to_retire_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t steps_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  // The same when the ticket began. Cursors that are read since may lack those
  // steps; what had ended by then they have.
  int64_t steps_before_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<const SamplePlan*> held_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> releases_ = 0;  // Written with mutex_ held.
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_DRAWN_ROWS_H_
