// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_STORAGE_DIRECTORY_H_
#define RILL_STORAGE_DIRECTORY_STORAGE_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/sparse_file.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/storage/directory/commit_record.h"
#include "rill/storage/directory/directory_lock.h"
#include "rill/storage/directory/row_files.h"
#include "rill/storage/directory/row_history.h"  // IWYU pragma: export
#include "rill/storage/directory/storage_description.h"
#include "rill/storage/lane_rings.h"
#include "rill/storage/row_layout.h"

namespace rill::storage_internal {

// A directory in which a storage lives while it is used: its description, its
// rows' files, the record of what is committed and the lock of its one owner.
// docs/formats/storage_directory.md.
//
// The storage calls, around every change of bytes: Reserve (may fail, nothing
// has changed), Announce, its copies, Commit.
//
// Thread-safety: thread-compatible; the storage's locks guard it.
class StorageDirectory {
 public:
  // Takes a directory, made if need be, for a new storage. FAILED_PRECONDITION
  // where something lies there already or another owner has it. What a creation
  // that was killed has left is removed.
  static absl::StatusOr<std::unique_ptr<StorageDirectory>> Create(
      absl::string_view caller, const std::string& path);
  // Takes a directory that holds a storage. NOT_FOUND where it does not;
  // DATA_LOSS where what it holds does not fit together.
  static absl::StatusOr<std::unique_ptr<StorageDirectory>> Open(
      absl::string_view caller, const std::string& path);

  // After Open; `marks` has one a lane, what a killed writer left in the middle
  // is no longer live.
  const StorageDescription& description() const { return *description_; }
  const std::vector<LaneMark>& marks() const { return marks_; }

  // The bytes of all rows of `layout`. After Create makes the files, after Open
  // the layout must be the description's.
  absl::StatusOr<std::shared_ptr<Buffer>> MapRows(const RowLayout& layout,
                                                  const Lanes& lanes);

  // Where they lie; after MapRows.
  const std::shared_ptr<AddressRange>& row_addresses() const {
    return rows_->range();
  }

  absl::Status Reserve(absl::Span<const SlotRange> ranges) {
    return rows_->Reserve(ranges);
  }
  // After MapRows, what the rows' files take on the disk. Thread-safe.
  int64_t DiskBytes() const { return rows_->DiskBytes(); }
  // What the file system has free. Thread-safe.
  std::optional<int64_t> FreeDiskBytes() const;
  void Announce(const LaneSteps& append) { record_->Announce(append); }
  void Commit(const LaneSteps& append) { record_->Commit(append); }
  // Around a change of the live rows that is no append. BeginDiscard goes from
  // `now` to `kept`; an error changes nothing. EndDiscard goes to `live`, and
  // all other rows read as zeros then; nobody may be reading those. Killed on
  // the way, the next owner zeroes all that is not live. No-op where there are
  // no files yet.
  absl::Status BeginDiscard(const LaneRings& now, const LaneRings& kept);
  void EndDiscard(const LaneRings& live);
  bool MayBeginInPlace() const { return record_->MayBeginInPlace(); }
  void BeginInPlace() { record_->BeginInPlace(); }
  void EndInPlace() { record_->EndInPlace(); }
  // Everything that was committed outlives a loss of power: rows first, then
  // the record that tells of them.
  absl::Status Sync() const;

  // Positions (row_history.h); after MapRows. SavePosition is that of `now`.
  absl::StatusOr<std::string> SavePosition(const LaneRings& now) const;
  absl::StatusOr<FoundPosition> FindPosition(absl::string_view position,
                                             const LaneRings& now) const;
  // BeginDiscard to a position of which nothing is missing and that is not
  // `now`. With an error, or killed on the way, the record is as it was.
  absl::Status GoBack(const LaneRings& now, FoundPosition found);
  // Positions so far are of rows that are about to go.
  absl::Status ForgetPositions(const Lanes& lanes) const;

 private:
  explicit StorageDirectory(std::string path) : path_(std::move(path)) {}
  absl::Status ReadDescription(absl::string_view caller);
  absl::Status MakeFiles(const RowLayout& layout, const Lanes& lanes);
  absl::Status OpenFiles(const RowLayout& layout, const Lanes& lanes);
  absl::Status MapRecord(const Lanes& lanes, bool is_new);
  absl::Span<std::byte> RecordBytes() const;
  // Empty where nobody has asked for a position yet.
  absl::StatusOr<std::vector<RowLine>> ReadHistory(absl::string_view caller,
                                                   const Lanes& lanes) const;
  absl::Status WriteHistory(const Lanes& lanes,
                            std::vector<RowLine> history) const;

  const std::string path_;
  std::unique_ptr<DirectoryLock> lock_;
  std::optional<StorageDescription> description_;
  std::vector<LaneMark> marks_;
  std::unique_ptr<RowFiles> rows_;
  std::shared_ptr<AddressRange> record_range_;
  std::unique_ptr<SparseFile> record_file_;
  std::optional<CommitRecord> record_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_STORAGE_DIRECTORY_H_
