// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SERIALIZED_SERIALIZED_STORAGE_H_
#define RILL_STORAGE_SERIALIZED_SERIALIZED_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/ring/write_scratch.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/serialized/row_store.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_traits.h"
#include "rill/tensordict/bound_rows.h"

namespace rill::storage_internal {

// A Storage in host memory that takes one write at a time: rings, observers,
// checks and files over a RowStore, which has the bytes. For kinds whose rows
// cost more than a copy, so that writers side by side would gain little.
//
// write_mutex_: one write at a time, from its checks until observers are
//   notified. They are called under it alone.
// state_mutex_: which rows are live and where; writers hold it to commit,
//   readers to find their rows (RowStore::Read). Second of the two.
// Thread-safety: thread-safe.
class SerializedStorage : public Storage {
 public:
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
  // FAILED_PRECONDITION.
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override;
  absl::Status Clear() override;
  absl::Status AddObserver(WriteObserver* observer) override;
  void RemoveObserver(WriteObserver* observer) override;
  absl::Status Save(const std::string& directory) const override;
  absl::Status Load(const std::string& directory,
                    const StorageLoadOptions& options = {}) override;

 protected:
  // Everything that a spec decides.
  struct Rows {
    explicit Rows(const TensorDictSpec& rows_spec);

    const TensorDictSpec spec;
    const SpecTree tree;
    int64_t row_bytes = 0;
    EventLeaves events;
    std::unique_ptr<RowStore> store;
  };

  // Rows in host memory.
  SerializedStorage(const StorageTraits& traits, EventKeys event_keys)
      : Storage(traits),
        event_keys_(std::move(event_keys)),
        rings_(traits.lanes) {}
  // Before anybody else has the storage. No effect where `spec` is empty.
  absl::Status Init(const TensorDictSpec& spec);

  absl::Status ReadKeys(absl::Span<const Slot> slots, LeafKeys keys,
                        TensorDict* out) const override;

  // The rows there are, `slots` of which are live; null: none so far. Nobody
  // commits meanwhile. OUT_OF_RANGE.
  absl::Status WithLive(
      absl::string_view caller, absl::Span<const Slot> slots,
      absl::FunctionRef<absl::Status(const std::shared_ptr<Rows>&)> fn) const;

  // Extend and WriteInPlace of rows that hold more than the leaves of the spec.
  // `prepare` gives that to the RowStore, which is about to be asked to stage
  // them.
  using PrepareFn = absl::FunctionRef<absl::Status(RowStore*)>;
  absl::StatusOr<ExtendResult> ExtendWith(const TensorDict& batch,
                                          const WriteInfo& info,
                                          PrepareFn prepare);
  // With it `rows` may be without leaves. `is_whole`: all that rows hold beside
  // the leaves of the spec is written, so that with these the rows are others.
  absl::Status WriteInPlaceWith(absl::Span<const Slot> slots,
                                const TensorDict& rows, InPlace kind,
                                bool is_whole,
                                std::optional<PrepareFn> prepare = {});
  // The same for files. `rows` may be null.
  virtual absl::Status SaveRows(const std::string& directory,
                                const LaneRings& rings,
                                const Rows* rows) const {
    return SaveRowsWith(directory, rings, rows, nullptr);
  }
  absl::Status SaveRowsWith(const std::string& directory,
                            const LaneRings& rings, const Rows* rows,
                            const RaggedFn& ragged) const;
  virtual absl::StatusOr<StoredRows> LoadRows(
      const std::string& directory, const TensorDictSpec& spec,
      const StorageLoadOptions& options) const;
  // `old` are the rows so far, or null. Gives what tells `fresh` of a run of
  // stored rows that is about to be staged; null: there is nothing to tell.
  using PrepareRunFn = std::function<absl::Status(const StoredRun&)>;
  virtual absl::StatusOr<PrepareRunFn> PrepareLoad(const StoredRows&,
                                                   const Rows* /*old*/,
                                                   Rows* /*fresh*/) const {
    return PrepareRunFn();
  }

  virtual absl::StatusOr<std::unique_ptr<RowStore>> MakeStore(
      const TensorDictSpec& spec) const = 0;
  // The kind of rows that do not lie in place: "compressed".
  virtual absl::string_view kind_of_rows() const = 0;

 private:
  absl::Status ReadRows(absl::Span<const Slot> slots,
                        const ReadRequest& request) const;
  absl::StatusOr<std::shared_ptr<Rows>> MakeRows(
      const TensorDictSpec& spec) const;

  // The holder of write_mutex_ reads what only writers change.
  const LaneRings& HeldRings() const
      ABSL_SHARED_LOCKS_REQUIRED(write_mutex_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return rings_;
  }
  const std::shared_ptr<Rows>& HeldRows() const
      ABSL_SHARED_LOCKS_REQUIRED(write_mutex_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return rows_;
  }

  absl::StatusOr<ExtendResult> Append(const TensorDict& batch,
                                      const LaneSteps& append,
                                      const BatchRows& extent,
                                      const std::shared_ptr<Rows>& rows,
                                      PrepareFn prepare, WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status StageRuns(const BatchRows& extent, Rows* rows,
                         WriteScratch* scratch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Overwrite(absl::Span<const Slot> slots, const TensorDict& rows,
                         bool is_whole, std::optional<PrepareFn> prepare,
                         WriteScratch* scratch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // The rows that are live in stored.rings, a part at a time.
  absl::Status FillWith(const StoredRows& stored, const PrepareRunFn& prepare,
                        Rows* rows) const;
  absl::Status StageStored(const StoredRun& run, const BatchLeaves& leaves,
                           Rows* rows) const;

  // The values of rows that are stored; with `written` of its leaves only.
  absl::Status BuildEvent(absl::Span<const Slot> slots,
                          const BatchLeaves* written,
                          WriteScratch* scratch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status BuildLiveEvent(WriteScratch* scratch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void Attach(WriteObserver* observer, const WriteScratch& scratch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void AttachAllAgain(WriteScratch* scratch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  const EventKeys event_keys_;

  mutable absl::Mutex write_mutex_ ABSL_ACQUIRED_BEFORE(state_mutex_);
  std::vector<WriteObserver*> observers_ ABSL_GUARDED_BY(write_mutex_);

  mutable absl::Mutex state_mutex_;
  std::shared_ptr<Rows> rows_ ABSL_GUARDED_BY(state_mutex_);  // Null: no spec.
  LaneRings rings_ ABSL_GUARDED_BY(state_mutex_);
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_SERIALIZED_SERIALIZED_STORAGE_H_
