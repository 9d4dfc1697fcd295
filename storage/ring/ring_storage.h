// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_RING_RING_STORAGE_H_
#define RILL_STORAGE_RING_RING_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/storage/chunks/saved_chunks.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/ring/ring_rows.h"
#include "rill/storage/ring/write_scratch.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/sharing/lease_list.h"
#include "rill/storage/sharing/writes_in_flight.h"
#include "rill/storage/storage.h"

namespace rill::storage_internal {

// How writers of a storage keep out of each other's way.
enum class WriteOrder {
  // Side by side where their rows differ. They plan, retire and publish under
  // state_mutex_, and copy without it.
  kSideBySide,
  // The same, but one at a time.
  kInTurn,
  // One at a time, and apart from readers: a write is staged without
  // state_mutex_, as that may take long, and copied under it. No row is lent.
  kApart,
};

// A Storage of rings over RingRows: lanes, events, observers, the steps of a
// write, loads. Dense and serialised storages add where rows lie and how they
// are read.
//
// alone_mutex_: writers share it where they go side by side. A call that
//   changes more than rows (Load, Clear, observers, the first write) holds it
//   alone, and so does each writer of the other orders.
//
// state_mutex_ is the publish lock. It guards cursors, which rows there are and
//   what is in flight. A write takes it to plan and retire, and again to
//   publish; it copies without it. Observers are notified under it, so of one
//   write at a time. A writer that works apart takes it to copy and publish
//   alone, and notifies under alone_mutex_.
//
// writes_ serialises writers of one row, and appends to one lane with their
//   publishing.
//
// With an error of WriteInPlace after rows have changed (a device's, or no
// memory for the event) observers are attached anew.
//
// Order: alone_mutex_ before state_mutex_; nobody waits for readers, for a
//   window or for an observer with state_mutex_; writers do with alone_mutex_.
// Thread-safety: thread-safe.
class RingStorage : public RequestReader<Storage> {
 public:
  int64_t size() const override;
  std::vector<Cursor> cursors() const override;
  TensorDictSpec spec() const override;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override;
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override;
  absl::Status AddObserver(WriteObserver* observer) override;
  void RemoveObserver(WriteObserver* observer) override;
  absl::Status Save(const std::string& directory) const override;
  absl::Status Load(const std::string& directory,
                    const StorageLoadOptions& options = {}) override;

 protected:
  RingStorage(const StorageTraits& traits, WriteOrder order)
      : RequestReader(traits), order_(order), rings_(traits.lanes) {}

  // Called before anybody else has the storage. No effect where `spec` is
  // empty.
  absl::Status Init(const TensorDictSpec& spec);

  // A kind of storage adds the functions from here to RaggedOf.
  virtual absl::StatusOr<std::shared_ptr<RingRows>> MakeRows(
      const TensorDictSpec& spec, EventLeaves events) const = 0;
  // A write, which meets no other, may begin beside those in flight.
  virtual bool MayBegin(bool /*is_append*/) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_) {
    return true;
  }
  // Tells readers what state_mutex_ guards, after each change.
  virtual void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_) {}
  // Rows with this spec that hold `stored`: new ones, or the present ones where
  // nothing in them is live.
  virtual absl::StatusOr<std::shared_ptr<RingRows>> LoadInto(
      const StoredRows& stored, const TensorDictSpec& spec)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_) = 0;
  // Replaces the content: all or nothing.
  virtual absl::Status Take(const StoredRows& stored, WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  // Saves what rows hold beside the leaves of their spec; null where that is
  // nothing. `rows` may be null.
  virtual RaggedFn RaggedOf(const LaneRings& /*rings*/,
                            const RingRows* /*rows*/) const {
    return nullptr;
  }

  // Extend and WriteInPlace of rows that hold more than the leaves of the spec.
  // `prepare` gives that to the rows, which are about to be asked to stage it.
  using PrepareFn = absl::FunctionRef<absl::Status(RingRows*)>;
  absl::StatusOr<ExtendResult> ExtendWith(const TensorDict& batch,
                                          const WriteInfo& info,
                                          std::optional<PrepareFn> prepare);
  // With it `rows` may be without leaves. `is_whole`: all that rows hold beside
  // the leaves of the spec is written, so that with these the rows are others.
  absl::Status WriteInPlaceWith(absl::Span<const Slot> slots,
                                const TensorDict& rows, InPlace kind,
                                bool is_whole,
                                std::optional<PrepareFn> prepare);

  // State that nobody changes while alone_mutex_ is held, or only its holder.
  const LaneRings& HeldRings() const
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return rings_;
  }
  const std::shared_ptr<RingRows>& HeldRows() const
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return rows_;
  }

  absl::StatusOr<std::shared_ptr<RingRows>> NewRows(
      const TensorDictSpec& spec) const;
  // Makes other rows live, whose bytes are there. Observers are notified that
  // the old ones are gone, and of nothing else.
  void Replace(const LaneRings& rings, std::shared_ptr<RingRows> rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  // Attaches observers anew: after Replace, or where a device or an observer
  // failed after rows were retired.
  void AttachAllAgain(WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  mutable absl::Mutex alone_mutex_ ABSL_ACQUIRED_BEFORE(state_mutex_);
  // Chunks of the rows that are there now; null where the next save writes all.
  mutable std::unique_ptr<SavedChunks> last_save_ ABSL_GUARDED_BY(alone_mutex_);

  mutable absl::Mutex state_mutex_;
  const WriteOrder order_;
  std::shared_ptr<RingRows> rows_
      ABSL_GUARDED_BY(state_mutex_);  // No spec: null.
  LaneRings rings_ ABSL_GUARDED_BY(state_mutex_);
  WritesInFlight writes_ ABSL_GUARDED_BY(state_mutex_);
  mutable absl::CondVar write_ended_;
  mutable LeaseList leases_;

 private:
  // ring_storage_write.cc
  absl::StatusOr<ExtendResult> AppendAlone(const TensorDict& batch,
                                           const LaneSteps& append,
                                           const BatchRows& extent,
                                           std::optional<PrepareFn> prepare,
                                           WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  // To `rows`, which are taken when the write is published if it is the first.
  absl::StatusOr<ExtendResult> Append(
      const TensorDict& batch, const LaneSteps& append, const BatchRows& extent,
      const std::shared_ptr<RingRows>& rows, std::optional<PrepareFn> prepare,
      WriteScratch* scratch) ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  // Checks the leaves, brings those of the rows that are kept to where they can
  // be copied from, and prepares the event for observers. `newest` holds them
  // where the batch is longer than a lane.
  absl::Status StageBatch(const TensorDict& batch, const BatchRows& extent,
                          const BatchRows& kept, RingRows* rows,
                          std::optional<PrepareFn> prepare,
                          WriteScratch* scratch, TensorDict* newest)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  // Plans `append` when no row of it is being written, stages, retires.
  absl::Status BeginAppend(const LaneSteps& append, const BatchRows& kept,
                           RingRows* rows, WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  absl::Status Overwrite(absl::Span<const Slot> slots, const TensorDict& rows,
                         bool is_whole, std::optional<PrepareFn> prepare,
                         WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  absl::Status BeginOverwrite(absl::Span<const Slot> slots, RingRows* rows,
                              WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  // All that one of the observers reads.
  ValuesRead values_read() const ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  // Tells each observer of an event. One that throws is told of nothing more
  // until AttachAllAgain, which is due then (has_failed).
  void Tell(absl::FunctionRef<void(WriteObserver*)> tell, WriteScratch* scratch)
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex_);
  void EndWrite(WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);

  // ring_storage.cc
  absl::Status BuildLiveEvent(const LaneRings& rings, const RingRows* rows,
                              const ValuesRead& read,
                              WriteScratch* scratch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);
  // False, a line in the log and OnClear where it throws.
  static bool TellOne(WriteObserver* observer,
                      absl::FunctionRef<void(WriteObserver*)> tell);
  bool Attach(WriteObserver* observer, const WriteScratch& scratch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex_);

  std::vector<WriteObserver*> observers_ ABSL_GUARDED_BY(alone_mutex_);
  // Those that have thrown and know no row. Writers have the lock of events.
  std::vector<WriteObserver*> deaf_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_RING_RING_STORAGE_H_
