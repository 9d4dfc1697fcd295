// SPDX-License-Identifier: Apache-2.0
// DenseStorage::Save and Load.
#include <utility>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/storage/dense_storage_impl.h"
#include "rill/storage/stored_rows.h"

namespace rill::storage_internal {

absl::Status DenseStorageImpl::Save(const std::string& directory) const {
  // Keeps writers out; readers go on.
  absl::MutexLock write(&write_mutex_);
  const LaneRings& rings = WriterRings();
  const Rows* const rows = WriterRows();
  std::vector<SlotRange> ranges;
  std::vector<Slot> slots;
  rings.LiveRanges(&ranges);
  ExpandRanges(ranges, &slots);
  return SaveStoredRows(directory, rings, slots,
                        rows == nullptr ? nullptr : rows->table.get());
}

absl::StatusOr<std::unique_ptr<DenseStorageImpl::Rows>>
DenseStorageImpl::LoadInto(const StoredRows& stored, const LaneRings& rings) {
  std::unique_ptr<Rows> fresh;
  Rows* rows = WriterRows();
  // Rows that are live stay whole until everything has been read.
  const TensorDictSpec spec =
      rows == nullptr ? TensorDictSpec::Of(stored.rows) : rows->spec();
  if (!spec.empty() && (rows == nullptr || WriterRings().size() > 0)) {
    RILL_ASSIGN_OR_RETURN(fresh, MakeRows(spec));
    rows = fresh.get();
  }
  rings.LiveRanges(&plan_.written);
  ExpandRanges(plan_.written, &slots_);
  event_.Clear();
  if (rows == nullptr || slots_.empty()) return fresh;
  // In the present table nothing is live, but what was may still be being read.
  windows_.WaitForReaders();
  RILL_RETURN_IF_ERROR(FillTable(stored.rows, slots_, rows->table.get()));
  if (!observers_.empty()) {
    RILL_RETURN_IF_ERROR(event_.FromTable(rows->events, *rows->table, slots_));
  }
  return fresh;
}

absl::Status DenseStorageImpl::LoadOver(const StoredRows& stored,
                                        LaneRings rings) {
  if (WriterRows() == nullptr && stored.rows.num_leaves() > 0) {
    RILL_ASSIGN_OR_RETURN(auto rows, MakeRows(TensorDictSpec::Of(stored.rows)));
    absl::MutexLock lock(&state_mutex_);
    rows_ = std::move(rows);
    Publish();
  }
  rings.LiveRanges(&plan_.written);
  ExpandRanges(plan_.written, &slots_);
  if (!slots_.empty()) {
    RILL_RETURN_IF_ERROR(directory_->Reserve(plan_.written));
  }
  for (WriteObserver* observer : observers_) observer->OnClear();
  leases_.EndAll();
  {
    // Half of the rows are not a storage: none is live while they change.
    absl::MutexLock lock(&state_mutex_);
    rings_.Clear();
    directory_->Set(MarksOf(rings_));
    Publish();
  }
  windows_.WaitForReaders();
  absl::Status filled;
  if (!slots_.empty()) {
    filled = FillTable(stored.rows, slots_, WriterRows()->table.get());
  }
  if (filled.ok()) {
    absl::MutexLock lock(&state_mutex_);
    rings_ = std::move(rings);
    directory_->Set(MarksOf(rings_));
    Publish();
  }
  AttachAllAgain();
  return filled;
}

absl::Status DenseStorageImpl::Load(const std::string& directory) {
  absl::MutexLock write(&write_mutex_);
  const Rows* const rows = WriterRows();
  RILL_ASSIGN_OR_RETURN(
      const StoredRows stored,
      LoadStoredRows(directory, lanes_,
                     rows == nullptr ? TensorDictSpec() : rows->spec()));
  LaneRings rings(lanes_);
  rings.Restore(stored.cursors, stored.first_live);
  if (directory_ != nullptr) return LoadOver(stored, std::move(rings));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Rows> fresh, LoadInto(stored, rings));

  for (WriteObserver* observer : observers_) observer->OnClear();
  leases_.EndAll();
  {
    absl::MutexLock lock(&state_mutex_);
    if (fresh != nullptr) rows_.swap(fresh);
    rings_ = std::move(rings);
    Publish();
  }
  windows_.WaitForReaders();  // Nobody is in the old table, which goes now.
  fresh.reset();
  for (WriteObserver* observer : observers_) Attach(observer);
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
