// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/directory_reader.h"

#include <sys/stat.h>

#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest.h"
#include "rill/storage/rows/row_layout.h"

namespace rill::storage_internal {

DirectoryReader::Identity DirectoryReader::IdentityOf(
    const std::string& directory) {
  struct stat about = {};
  if (stat(JoinPath(directory, kManifestFile).c_str(), &about) != 0) return {};
  return {about.st_dev, about.st_ino, about.st_ctim.tv_sec,
          about.st_ctim.tv_nsec};
}

absl::StatusOr<std::unique_ptr<DirectoryReader>> DirectoryReader::Open(
    absl::string_view caller, const std::string& path) {
  RILL_RETURN_IF_ERROR(CheckDescriptionExists(caller, path));
  std::unique_ptr<DirectoryReader> reader(new DirectoryReader(path));
  // rill.json is written last and never changed. Where it is the same before
  // the first file and after the last, all files are of one storage. Inode
  // numbers are used again, so the time counts too.
  reader->identity_ = IdentityOf(path);
  RILL_ASSIGN_OR_RETURN(reader->description_, ReadDescription(caller, path));
  const StorageDescription& found = reader->description_;
  const int64_t bytes = CommitRecord::SizeBytes(found.lanes.count);
  RILL_ASSIGN_OR_RETURN(const auto record,
                        SparseFile::Open(JoinPath(path, kRecordFile), bytes,
                                         SparseFile::Mode::kReadOnly));
  RILL_ASSIGN_OR_RETURN(reader->record_range_, AddressRange::Create(bytes));
  RILL_RETURN_IF_ERROR(record->Map(*reader->record_range_, 0));
  RILL_ASSIGN_OR_RETURN(const RowLayout layout, LayoutOf(found));
  RILL_ASSIGN_OR_RETURN(
      reader->rows_,
      RowFiles::Map(layout, found.lanes, path, RowFiles::Mode::kOpenToRead));
  if (!(IdentityOf(path) == reader->identity_)) {
    return Unavailable(
        caller, ": \"", path,
        "\": got another directory while it was opened, want one; try again");
  }
  // A damaged record is an error of Open, not of the first read.
  CommitView view;
  RILL_RETURN_IF_ERROR(reader->Look(&view));
  return reader;
}

absl::Span<const std::byte> DirectoryReader::RecordBytes() const {
  return absl::MakeConstSpan(record_range_->data(),
                             record_range_->size_bytes());
}

absl::Status DirectoryReader::Look(CommitView* view) const {
  return CommitRecord::ReadLive(RecordBytes(), description_.lanes, view);
}

absl::Status DirectoryReader::CheckIsSame() const {
  if (IdentityOf(path_) == identity_) return absl::OkStatus();
  return FailedPrecondition(
      "MemmapStorage: \"", path_,
      "\": got a directory that was removed or made anew, want the one that "
      "was opened; open a reader again");
}

bool DirectoryReader::IsNewest(uint64_t number) const {
  return CommitRecord::IsNewest(RecordBytes(), description_.lanes, number);
}

}  // namespace rill::storage_internal
