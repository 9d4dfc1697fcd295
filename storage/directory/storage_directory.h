// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_STORAGE_DIRECTORY_H_
#define RILL_STORAGE_DIRECTORY_STORAGE_DIRECTORY_H_

#include <cstddef>
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
#include "rill/storage/directory/reader_holds.h"
#include "rill/storage/directory/row_files.h"
#include "rill/storage/directory/row_history.h"  // IWYU pragma: export
#include "rill/storage/directory/storage_description.h"
#include "rill/storage/on_disk/rows_on_disk.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/rows/row_layout.h"

namespace rill::storage_internal {

// A directory in which a storage lives while it is used: its description, its
// rows' files, the record of what is committed and the lock of its one owner.
// docs/formats/storage_directory.md.
class StorageDirectory final : public RowsOnDisk {
 public:
  // Takes a directory, made if need be, for a new storage. FAILED_PRECONDITION
  // where something lies there already or another owner has it. Files that a
  // killed creation has left are removed.
  static absl::StatusOr<std::unique_ptr<StorageDirectory>> Create(
      absl::string_view caller, const std::string& path);
  // Takes a directory that holds a storage. NOT_FOUND where it does not;
  // DATA_LOSS where what it holds does not fit together.
  static absl::StatusOr<std::unique_ptr<StorageDirectory>> Open(
      absl::string_view caller, const std::string& path);

  // After Open.
  const StorageDescription& description() const { return *description_; }

  // Before MapRows: appends go by what readers hold.
  void GoByHolds() { goes_by_holds_ = true; }

  std::optional<LaneRings> FoundRings(const Lanes& lanes) const override;
  absl::StatusOr<std::shared_ptr<Buffer>> MapRows(const RowLayout& layout,
                                                  const Lanes& lanes) override;
  const std::shared_ptr<AddressRange>& row_addresses() const override {
    return rows_->range();
  }
  absl::Status Reserve(absl::Span<const SlotRange> ranges) override {
    return rows_->Reserve(ranges);
  }
  int64_t DiskBytes() const override { return rows_->DiskBytes(); }
  std::optional<int64_t> FreeDiskBytes() const override;
  size_t max_appends_in_flight() const override { return kMaxAppendsInFlight; }
  absl::Status Announce(const LaneSteps& append) override;
  void Commit(const LaneSteps& append) override { record_->Commit(append); }
  absl::Status BeginDiscard(const LaneRings& now,
                            const LaneRings& kept) override;
  void EndDiscard(const LaneRings& live) override;
  bool MayBeginInPlace() const override { return record_->MayBeginInPlace(); }
  void BeginInPlace() override { record_->BeginInPlace(); }
  void EndInPlace() override { record_->EndInPlace(); }
  absl::Status Sync() const override;
  absl::StatusOr<std::string> SavePosition(const LaneRings& now) const override;
  absl::StatusOr<FoundPosition> FindPosition(
      absl::string_view position, const LaneRings& now) const override;
  absl::Status GoBack(const LaneRings& now, FoundPosition found) override;
  absl::Status ForgetPositions(const Lanes& lanes) const override;

 private:
  explicit StorageDirectory(std::string path) : path_(std::move(path)) {}
  absl::Status ReadDescription(absl::string_view caller);
  absl::Status MakeFiles(const RowLayout& layout, const Lanes& lanes);
  absl::Status OpenFiles(const RowLayout& layout, const Lanes& lanes);
  absl::Status MapRecord(const Lanes& lanes, bool is_new);
  absl::Span<std::byte> RecordBytes() const;
  void BeginHolds();
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
  bool goes_by_holds_ = false;
  std::unique_ptr<ReaderHolds> holds_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_STORAGE_DIRECTORY_H_
