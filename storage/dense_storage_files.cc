// SPDX-License-Identifier: Apache-2.0
// DenseStorage::Save and Load, and positions.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/dense_storage_impl.h"

namespace rill::storage_internal {

absl::Status DenseStorageImpl::Save(const std::string& directory) const {
  // Keeps writers out; readers go on.
  absl::MutexLock alone(&alone_mutex_);
  const LaneRings& rings = HeldRings();
  const Rows* const rows = HeldRows();
  // Others may write into columns in files, and the counts would miss it.
  const bool hears_all = directory_ == nullptr || rows == nullptr ||
                         rows->table->layout().layout() == StorageLayout::kRows;
  if (!hears_all) last_save_.reset();
  return rows == nullptr
             ? SaveStoredRows(directory, rings, nullptr, nullptr, &last_save_)
             : SaveStoredRows(directory, rings, rows->table.get(),
                              &rows->overwrites, &last_save_);
}

absl::StatusOr<std::unique_ptr<DenseStorageImpl::Rows>>
DenseStorageImpl::LoadInto(const StoredRows& stored, WriteScratch* scratch) {
  std::unique_ptr<Rows> fresh;
  Rows* rows = HeldRows();
  // A table without live rows is filled where it lies, so memory for both
  // contents is needed only where rows are live.
  // Rows that are live stay whole until everything has been read.
  const TensorDictSpec spec = rows == nullptr ? stored.spec : rows->spec();
  if (!spec.empty() && (rows == nullptr || HeldRings().size() > 0)) {
    RILL_ASSIGN_OR_RETURN(fresh, MakeRows(spec));
    rows = fresh.get();
  }
  stored.rings.LiveRanges(&scratch->plan.written);
  ExpandRanges(scratch->plan.written, &scratch->slots);
  scratch->event.Clear();
  if (rows == nullptr || scratch->slots.empty()) return fresh;
  // In the present table nothing is live, but what was may still be being read.
  windows_.WaitForReaders();
  RILL_RETURN_IF_ERROR(FillTable(stored, rows->table.get()));
  if (!observers_.empty()) {
    RILL_RETURN_IF_ERROR(
        scratch->event.FromTable(rows->events, *rows->table, scratch->slots));
  }
  return fresh;
}

absl::Status DenseStorageImpl::LoadOver(const StoredRows& stored,
                                        WriteScratch* scratch) {
  if (HeldRows() == nullptr && !stored.spec.empty()) {
    RILL_ASSIGN_OR_RETURN(auto rows, MakeRows(stored.spec));
    absl::MutexLock lock(&state_mutex_);
    rows_ = std::move(rows);
    Publish();
  }
  stored.rings.LiveRanges(&scratch->plan.written);
  ExpandRanges(scratch->plan.written, &scratch->slots);
  if (!scratch->slots.empty()) {
    // The last step that fails without a change on the disk.
    RILL_RETURN_IF_ERROR(directory_->Reserve(scratch->plan.written));
  }
  // Before the record changes. After a kill in between, a position may be
  // refused whose rows are all there; none is ever taken for one of the loaded
  // rows.
  RILL_RETURN_IF_ERROR(directory_->ForgetPositions(lanes()));
  // Half of the rows are not a storage: none is live while they change.
  RILL_RETURN_IF_ERROR(
      directory_->BeginDiscard(HeldRings(), LaneRings(lanes())));
  for (WriteObserver* observer : observers_) observer->OnClear();
  {
    absl::MutexLock lock(&state_mutex_);
    leases_.EndAll();
    rings_.Clear();
    Publish();
  }
  // Readers that found the old rows live copy them up to here.
  windows_.WaitForReaders();
  absl::Status filled;
  if (!scratch->slots.empty()) {
    filled = FillTable(stored, HeldRows()->table.get());
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

absl::Status DenseStorageImpl::Load(const std::string& directory,
                                    const StorageLoadOptions& options) {
  absl::MutexLock alone(&alone_mutex_);
  const Rows* const rows = HeldRows();
  RILL_ASSIGN_OR_RETURN(
      StoredRows stored,
      LoadStoredRows(directory, lanes(),
                     rows == nullptr ? TensorDictSpec() : rows->spec(),
                     options));
  WriteScratch scratch;  // As large as all rows, so not the thread's.
  last_save_.reset();
  RILL_RETURN_IF_ERROR(Take(stored, &scratch));
  if (const Rows* const loaded = HeldRows(); loaded != nullptr) {
    last_save_ = ChunksOf(std::move(stored), loaded->overwrites);
  }
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::Take(const StoredRows& stored,
                                    WriteScratch* scratch) {
  if (directory_ != nullptr) return LoadOver(stored, scratch);
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Rows> fresh, LoadInto(stored, scratch));

  // Nothing fails from here on. Samplers forget the old rows before a reader
  // can find others in their slots.
  for (WriteObserver* observer : observers_) observer->OnClear();
  {
    absl::MutexLock lock(&state_mutex_);
    leases_.EndAll();
    if (fresh != nullptr) rows_.swap(fresh);
    rings_ = stored.rings;
    Publish();
  }
  windows_.WaitForReaders();  // Nobody is in the old table, which goes now.
  fresh.reset();
  for (WriteObserver* observer : observers_) Attach(observer, *scratch);
  return absl::OkStatus();
}

absl::StatusOr<std::string> DenseStorageImpl::SavePosition() {
  if (directory_ == nullptr) return Storage::SavePosition();
  absl::MutexLock alone(&alone_mutex_);
  if (HeldRows() == nullptr) {
    return absl::FailedPreconditionError(
        "Storage::SavePosition: rows: got none yet, want one or a spec");
  }
  return directory_->SavePosition(HeldRings());
}

void DenseStorageImpl::Show(const LaneRings& rings, WriteScratch* scratch) {
  for (WriteObserver* observer : observers_) observer->OnClear();
  {
    absl::MutexLock lock(&state_mutex_);
    leases_.EndAll();
    rings_ = rings;
    Publish();
  }
  AttachAllAgain(scratch);
}

absl::Status DenseStorageImpl::LoadPosition(absl::string_view position,
                                            bool accept_newer,
                                            AcceptPosition accept) {
  if (directory_ == nullptr) {
    return Storage::LoadPosition(position, accept_newer, accept);
  }
  absl::MutexLock alone(&alone_mutex_);
  if (HeldRows() == nullptr) {
    return absl::FailedPreconditionError(
        "Storage::LoadPosition: rows: got none yet, want those of the "
        "position");
  }
  RILL_ASSIGN_OR_RETURN(FoundPosition found,
                        directory_->FindPosition(position, HeldRings()));
  PositionRows rows = {.missing = found.missing, .kept = std::move(found.kept)};
  if (rows.missing > 0 && !accept_newer) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Storage::LoadPosition: rows of the position that were overwritten or "
        "discarded since: got ",
        rows.missing, " of ", found.rings.size(),
        ", want 0; accept_newer goes on from the newest rows"));
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
