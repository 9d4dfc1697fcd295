// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DENSE_STORAGE_IMPL_H_
#define RILL_STORAGE_DENSE_STORAGE_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/storage/chunks/saved_chunks.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/on_disk/rows_on_disk.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/ring/write_scratch.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/read_ahead.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/rows/row_table.h"
#include "rill/storage/sharing/epoch_windows.h"
#include "rill/storage/sharing/lease_list.h"
#include "rill/storage/storage.h"

namespace rill::storage_internal {

// DenseStorage's body: rings (which slots), a table (which bytes), leases and
// observers, and what holds them together.
//
// alone_mutex_: writers share it, so that they go side by side. A call that
//   changes more than rows (Load, Clear, observers, the first write) holds it
//   alone.
//
// state_mutex_ is the publish lock. It guards cursors, which table there is and
//   what is in flight. Observers are notified of writes under it, so of one at
//   a time. It is never held while bytes are copied: a write takes it to plan
//   and retire, and again to publish. A read needs it only where lanes are
//   partly filled.
//
// writes_ serialises writers of one row, and appends to one lane with their
//   publishing.
//
// windows_ keeps readers from the rows that a writer is overwriting, a few at a
//   time; readers of other rows go on. A device's copies are serialised on its
//   stream instead. Its writers are serialised too, as with dedup_next.
//
// Order: alone_mutex_ before state_mutex_; nobody waits for readers, for a
//   window or for an observer with state_mutex_; writers do with alone_mutex_.
class DenseStorageImpl final : public Storage {
 public:
  // Everything that a spec decides.
  struct Rows {
    explicit Rows(std::unique_ptr<RowTable> table);
    const TensorDictSpec& spec() const { return table->spec(); }
    ReadPlaces::Source source() const {
      return {table->spec(), tree, table->device()};
    }
    // `batch` as in ReadAhead::Read.
    absl::Status Read(absl::Span<const Slot> slots,
                      absl::Span<const Slot> batch,
                      absl::Span<const LeafBatch> leaves) const {
      return ahead ? ahead->Read(slots, batch, leaves)
                   : table->Read(slots, leaves);
    }
    // A write of `count` rows is more than a cache keeps until they are read.
    bool PassesCaches(int64_t count) const;

    std::unique_ptr<RowTable> table;
    std::optional<ReadAhead> ahead;  // Where rows lie in files.
    OverwriteCounts overwrites;      // Changes under state_mutex_.
    SpecTree tree;
    EventLeaves events;
    // Rows of one window, of those announced together, and of one stay inside
    // an epoch.
    int64_t window_rows = 0;
    int64_t announced_rows = 0;
    size_t read_rows = 0;
    // The slots below are live in this table.
    std::atomic<int64_t> live_below{0};
  };

  // `options` were checked. With a directory rows and cursors live there: those
  // that it was opened with, if any.
  explicit DenseStorageImpl(const DenseStorage::Options& options,
                            std::unique_ptr<RowsOnDisk> directory = nullptr);
  absl::Status MakeRowsFromOptions();

  int64_t size() const override;
  std::vector<Cursor> cursors() const override;
  TensorDictSpec spec() const override;
  StorageUsage MemoryUsage() const override;

  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override;
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override;
  absl::Status ReadInto(absl::Span<const Slot> slots,
                        absl::Span<const size_t> leaves,
                        absl::Span<const BoundLeaf> places) const override;
  absl::StatusOr<bool> ShowRows(absl::Span<const Slot> slots, size_t leaf,
                                ShowRowFn fn) const override;
  absl::StatusOr<Event> EnqueueRead(absl::Span<const Slot> slots,
                                    const Stream& stream,
                                    TensorDict* out) const override;
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override;
  absl::Status Clear() override;
  absl::Status Sync() override;
  absl::Status AddObserver(WriteObserver* observer) override;
  void RemoveObserver(WriteObserver* observer) override;
  absl::Status Save(const std::string& directory) const override;
  absl::Status Load(const std::string& directory,
                    const StorageLoadOptions& options) override;
  absl::StatusOr<std::string> SavePosition() override;
  absl::Status LoadPosition(absl::string_view position, bool accept_newer,
                            AcceptPosition accept) override;

 private:
  absl::Status ReadKeys(absl::Span<const Slot> slots, LeafKeys keys,
                        TensorDict* out) const override;
  absl::Status ReadRows(absl::Span<const Slot> slots,
                        const ReadRequest& request) const;

  // State that nobody changes while alone_mutex_ is held, or only its holder.
  const LaneRings& HeldRings() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_)
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return rings_;
  }
  Rows* HeldRows() const
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return rows_.get();
  }

  absl::StatusOr<std::unique_ptr<Rows>> MakeRows(
      const TensorDictSpec& spec) const;
  // The table that holds `slots`, for a reader inside an epoch; null where no
  // slot is asked for and there is none. OUT_OF_RANGE as Read.
  absl::StatusOr<const Rows*> FindLive(absl::string_view caller,
                                       absl::Span<const Slot> slots) const;
  // Tells readers what state_mutex_ guards.
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);

  // Writing (dense_storage_write.cc).
  // `fresh` is the table of `rows` where this is the first write, else null; it
  // is taken when the write is published.
  absl::StatusOr<ExtendResult> Append(const TensorDict& batch,
                                      const LaneSteps& append,
                                      const BatchRows& extent, Rows* rows,
                                      std::unique_ptr<Rows>* fresh,
                                      WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  // The same alone, making the table if there is none.
  absl::StatusOr<ExtendResult> AppendAlone(const TensorDict& batch,
                                           const LaneSteps& append,
                                           const BatchRows& extent,
                                           WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  // Checks the leaves, brings those of the rows that are kept to where they can
  // be copied from, and prepares the event for observers. `newest` holds them
  // where the batch is longer than a lane.
  absl::Status StageBatch(const TensorDict& batch, const BatchRows& extent,
                          const BatchRows& kept, const Rows& rows,
                          WriteScratch* scratch, TensorDict* newest)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  // Plans `append` when no row of it is being written, makes room, retires.
  absl::Status BeginAppend(const LaneSteps& append, const BatchRows& kept,
                           Rows* rows, WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_)
          ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  absl::Status CopyBatch(const BatchRows& kept, Rows* rows,
                         WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  absl::Status Overwrite(absl::Span<const Slot> slots, const TensorDict& rows,
                         WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  absl::Status BeginOverwrite(absl::Span<const Slot> slots, Rows* rows,
                              WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_)
          ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  void EndWrite(WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  // Place i -> row slots[i], a window at a time: those of an append, which
  // `runs` cuts off, or as the slots come. Moves `places` on.
  absl::Status WriteInWindows(Rows* rows, absl::Span<const Slot> slots,
                              RunCutter* runs, WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  // How many rows behind the first `done` of `ranges` observers let change.
  int64_t AskObservers(absl::Span<const SlotRange> ranges, size_t done) const
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);

  // Replaces the content, once all that can fail has been checked.
  absl::Status Take(const StoredRows& stored, WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  // The table that holds `stored`: a new one, or null where the present one
  // could take it because nothing in it is live.
  absl::StatusOr<std::unique_ptr<Rows>> LoadInto(const StoredRows& stored,
                                                 WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  // The same over the rows of a directory, once all that can fail has been
  // checked.
  absl::Status LoadOver(const StoredRows& stored, WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  // Makes other rows live, only rows whose bytes are there. Observers are
  // notified as of a Load. Nothing else changes.
  void Show(const LaneRings& rings, WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  // Observers.
  absl::Status BuildLiveEvent(const LaneRings& rings, const Rows* rows,
                              WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  void Attach(WriteObserver* observer, const WriteScratch& scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  // Attaches observers anew when a device fails after rows were retired.
  void AttachAllAgain(WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  const DenseStorage::Options options_;
  const std::unique_ptr<RowsOnDisk> directory_;  // Null: in memory.
  // Writers take turns.
  const bool writes_alone_;

  mutable absl::Mutex alone_mutex_ ABSL_ACQUIRED_BEFORE(state_mutex_);
  std::vector<WriteObserver*> observers_ ABSL_GUARDED_BY(alone_mutex_);
  // Chunks of the rows that are there now; null where the next save writes all.
  mutable std::unique_ptr<SavedChunks> last_save_ ABSL_GUARDED_BY(alone_mutex_);

  mutable absl::Mutex state_mutex_;
  std::unique_ptr<Rows> rows_ ABSL_GUARDED_BY(state_mutex_);  // Null: no spec.
  LaneRings rings_ ABSL_GUARDED_BY(state_mutex_);
  WritesInFlight writes_ ABSL_GUARDED_BY(state_mutex_);
  mutable absl::CondVar write_ended_;

  // rows_ as readers see it, inside an epoch.
  std::atomic<const Rows*> shown_rows_{nullptr};
  std::atomic<size_t> read_rows_{SIZE_MAX};
  mutable EpochWindows windows_;
  mutable LeaseList leases_;
};

// INVALID_ARGUMENT, starting with `caller`, names the option.
absl::Status CheckOptions(absl::string_view caller,
                          const DenseStorage::Options& options);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DENSE_STORAGE_IMPL_H_
