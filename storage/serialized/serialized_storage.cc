// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/serialized/serialized_storage.h"

#include <utility>

#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/storage/rows/batch_leaves.h"

namespace rill::storage_internal {
namespace {

// A lock that its holder may end early.
class ReaderLock {
 public:
  explicit ReaderLock(absl::Mutex* mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderLock() { Release(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

  void Release() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (mutex_ != nullptr) std::exchange(mutex_, nullptr)->ReaderUnlock();
  }

 private:
  absl::Mutex* mutex_;
};

}  // namespace

StorageUsage SerializedStorage::MemoryUsage() const {
  absl::ReaderMutexLock state(&state_mutex_);
  if (rows_ == nullptr) return {};
  const RowStore::Usage usage = StoreOf(rows_)->GetUsage();
  return {.row = rows_->row_bytes,
          .memory = usage.memory,
          .full = usage.full,
          .saved = usage.saved};
}

absl::Status SerializedStorage::WithLive(
    absl::string_view caller, absl::Span<const Slot> slots,
    absl::FunctionRef<absl::Status(const std::shared_ptr<RingRows>&)> fn)
    const {
  absl::ReaderMutexLock state(&state_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive(caller, slots));
  return fn(rows_);
}

absl::Status SerializedStorage::ReadRows(absl::Span<const Slot> slots,
                                         const ReadRequest& request) const {
  if (traits().ragged_leaves && request.out == nullptr) {
    return FailedPrecondition(
        request.caller,
        ": rows: got ones with ragged leaves, want rows of one shape; Read "
        "them");
  }
  // Whatever a Load does, these rows stay until they have been read.
  std::shared_ptr<RingRows> rows;
  ReaderLock lock(&state_mutex_);
  // Rows and rings under one lock: slots are checked against the rings of the
  // very rows that are read.
  const auto find = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {
    rows = rows_;
    return rings_.CheckLive(request.caller, slots);
  };
  RILL_RETURN_IF_ERROR(find());
  ReadPlaces& places = ReadPlaces::OfThread();
  if (rows == nullptr) {
    places.FindNone();
  } else {
    RILL_RETURN_IF_ERROR(places.Find({rows->spec, rows->tree, rows->device},
                                     static_cast<int64_t>(slots.size()),
                                     request));
    RILL_RETURN_IF_ERROR(
        StoreOf(rows)->Read(slots, places.leaves, [&lock] { lock.Release(); }));
  }
  places.Finish(request);
  return absl::OkStatus();
}

absl::StatusOr<SlotLease> SerializedStorage::Lease(SlotRange range) const {
  absl::ReaderMutexLock state(&state_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive("Storage::Lease", range));
  return FailedPrecondition(
      "Storage::Lease: rows: got ", kind_of_rows_,
      " ones, want rows that lie in place; Read them, or keep "
      "them in a DenseStorage");
}

absl::Status SerializedStorage::Clear() {
  absl::MutexLock alone(&alone_mutex_);
  Replace(LaneRings(lanes()), HeldRows());
  absl::MutexLock state(&state_mutex_);
  if (rows_ != nullptr) StoreOf(rows_)->Clear();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<RingRows>> SerializedStorage::LoadInto(
    const StoredRows& stored, const TensorDictSpec& spec) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<RingRows> made, NewRows(spec));
  RowStore* const rows = StoreOf(made);
  RILL_ASSIGN_OR_RETURN(const PrepareRunFn prepare,
                        PrepareLoad(stored, StoreOf(HeldRows()), rows));
  BatchLeaves leaves;
  for (const StoredRows::Part& part : stored.parts) {
    if (part.rows.batch_shape()[0] == 0) continue;
    RILL_RETURN_IF_ERROR(leaves.Bind("Storage::Load", spec, rows->tree,
                                     part.rows, /*allow_part=*/false));
    RILL_RETURN_IF_ERROR(
        leaves.Prepare(rows->device, rows->lent, /*batch_rank=*/1));
    const auto stage = [&](const StoredRun& run) -> absl::Status {
      if (prepare != nullptr) {
        RILL_RETURN_IF_ERROR(prepare(run));
      }
      return rows->StageStored(run, leaves);
    };
    RILL_RETURN_IF_ERROR(ForEachRun(stored, part, stage));
    // A part at a time, so that no more than a part is staged.
    rows->Commit();
  }
  return made;
}

}  // namespace rill::storage_internal
