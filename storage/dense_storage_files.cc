// SPDX-License-Identifier: Apache-2.0
// How a DenseStorage takes over other rows, and positions.
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/dense_storage_impl.h"

namespace rill::storage_internal {

absl::StatusOr<std::shared_ptr<RingRows>> DenseStorageImpl::LoadInto(
    const StoredRows& stored, const TensorDictSpec& spec) {
  // A table without live rows is filled where it lies, so memory for both
  // contents is needed only where rows are live.
  std::shared_ptr<RingRows> rows = HeldRows();
  if (rows == nullptr || HeldRings().size() > 0) {
    RILL_ASSIGN_OR_RETURN(rows, NewRows(spec));
  } else {
    // Nothing in it is live, but what was may still be being read.
    windows_.WaitForReaders();
  }
  RILL_RETURN_IF_ERROR(FillTable(stored, DenseOf(rows)->table()));
  return rows;
}

absl::Status DenseStorageImpl::LoadOver(const StoredRows& stored,
                                        WriteScratch* scratch) {
  if (HeldRows() == nullptr) {
    RILL_RETURN_IF_ERROR(Init(stored.spec));
  }
  stored.rings.LiveRanges(&scratch->plan.written);
  if (!scratch->plan.written.empty()) {
    // The last step that fails without a change on the disk.
    RILL_RETURN_IF_ERROR(directory_->Reserve(scratch->plan.written));
  }
  // Before the record changes. After a kill in between, a position may be
  // refused whose rows are all there; none is ever taken for one of the loaded
  // rows.
  RILL_RETURN_IF_ERROR(directory_->ForgetPositions(lanes()));
  // Half of the rows are not a storage: none is live while they change.
  const LaneRings none(lanes());
  RILL_RETURN_IF_ERROR(directory_->BeginDiscard(HeldRings(), none));
  Replace(none, HeldRows());
  // Readers that found the old rows live copy them up to here.
  windows_.WaitForReaders();
  absl::Status filled;
  if (!scratch->plan.written.empty()) {
    filled = FillTable(stored, DenseOf(HeldRows())->table());
  }
  if (filled.ok()) {
    absl::MutexLock lock(&state_mutex_);
    rings_ = stored.rings;
    Publish();
  }
  // After an error too: no row is live then, and all are zeroed.
  directory_->EndDiscard(HeldRings());
  AttachAllAgain(scratch);
  return filled;
}

absl::Status DenseStorageImpl::Take(const StoredRows& stored,
                                    WriteScratch* scratch) {
  if (directory_ != nullptr) return LoadOver(stored, scratch);
  const std::shared_ptr<RingRows> before = HeldRows();
  RILL_RETURN_IF_ERROR(RingStorage::Take(stored, scratch));
  windows_.WaitForReaders();  // Nobody is in the old table, which goes now.
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::Clear() {
  absl::MutexLock alone(&alone_mutex_);
  const LaneRings none(lanes());
  if (directory_ != nullptr) {
    RILL_RETURN_IF_ERROR(directory_->ForgetPositions(lanes()));
    RILL_RETURN_IF_ERROR(directory_->BeginDiscard(HeldRings(), none));
  }
  Replace(none, HeldRows());
  DenseRows* const rows = DenseOf(HeldRows());
  // In plain memory the bytes stay, so readers need not have left.
  if (directory_ == nullptr && (rows == nullptr || !rows->shares_rows())) {
    return absl::OkStatus();
  }
  windows_.WaitForReaders();  // Of rows that were live.
  if (rows != nullptr) rows->Forget();
  if (directory_ != nullptr) directory_->EndDiscard(none);
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::Sync() {
  if (directory_ == nullptr) return absl::OkStatus();
  // No append may be in flight while the record goes to the disk.
  absl::MutexLock alone(&alone_mutex_);
  return directory_->Sync();
}

// --- Positions ---------------------------------------------------------------

absl::Status DenseStorageImpl::CheckHasRows(absl::string_view caller,
                                            absl::string_view want) const {
  if (HeldRows() != nullptr) return absl::OkStatus();
  return FailedPrecondition(caller, ": rows: got none yet, want ", want);
}

absl::StatusOr<std::string> DenseStorageImpl::SavePosition() {
  if (directory_ == nullptr) return Storage::SavePosition();
  absl::MutexLock alone(&alone_mutex_);
  RILL_RETURN_IF_ERROR(CheckHasRows("Storage::SavePosition", "one or a spec"));
  return directory_->SavePosition(HeldRings());
}

void DenseStorageImpl::Show(const LaneRings& rings, WriteScratch* scratch) {
  Replace(rings, HeldRows());
  AttachAllAgain(scratch);
}

absl::Status DenseStorageImpl::LoadPosition(absl::string_view position,
                                            bool accept_newer,
                                            AcceptPosition accept) {
  if (directory_ == nullptr) {
    return Storage::LoadPosition(position, accept_newer, accept);
  }
  absl::MutexLock alone(&alone_mutex_);
  RILL_RETURN_IF_ERROR(
      CheckHasRows("Storage::LoadPosition", "those of the position"));
  RILL_ASSIGN_OR_RETURN(FoundPosition found,
                        directory_->FindPosition(position, HeldRings()));
  PositionRows rows = {.missing = found.missing, .kept = std::move(found.kept)};
  if (rows.missing > 0 && !accept_newer) {
    return FailedPrecondition(
        "Storage::LoadPosition: rows of the position that were overwritten or "
        "discarded since: got ",
        rows.missing, " of ", found.rings.size(),
        ", want 0; accept_newer goes on from the newest rows");
  }
  if (rows.missing > 0 || found.is_here) return accept(rows);
  WriteScratch scratch;  // As large as all rows, so not the thread's.
  // `accept` decides with observers that see the rows of the position, so these
  // are published in memory first. Bytes of the rows that go stay as they are
  // until EndDiscard; after an error `before` is published again.
  const LaneRings before = HeldRings();
  Show(found.rings, &scratch);
  absl::Status status = accept(rows);
  if (status.ok()) status = directory_->GoBack(before, std::move(found));
  if (!status.ok()) {
    Show(before, &scratch);
    return status;
  }
  windows_.WaitForReaders();  // Of rows that were live.
  directory_->EndDiscard(HeldRings());
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
