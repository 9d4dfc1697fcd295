// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_DIRECTORY_READER_H_
#define RILL_STORAGE_DIRECTORY_DIRECTORY_READER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/sparse_file.h"
#include "rill/storage/directory/commit_record.h"
#include "rill/storage/directory/row_files.h"
#include "rill/storage/directory/storage_description.h"

namespace rill::storage_internal {

// A storage directory that another process may be writing to: mapped read-only,
// without its lock.
// Thread-safety: immutable.
class DirectoryReader {
 public:
  // NOT_FOUND and DATA_LOSS as StorageDirectory::Open; UNAVAILABLE where the
  // directory was made anew meanwhile.
  static absl::StatusOr<std::unique_ptr<DirectoryReader>> Open(
      absl::string_view caller, const std::string& path);

  const std::string& path() const { return path_; }
  const StorageDescription& description() const { return description_; }
  const RowFiles& rows() const { return *rows_; }

  // FAILED_PRECONDITION where the directory is no longer the one that was
  // opened. Cost: a stat.
  absl::Status CheckIsSame() const;
  // CommitRecord::ReadLive and IsNewest.
  absl::Status Look(CommitView* view) const;
  bool IsNewest(uint64_t number) const;

 private:
  // The file that is made last when a directory is made, and never changed.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  static Identity IdentityOf(const std::string& directory);

  explicit DirectoryReader(std::string path) : path_(std::move(path)) {}
  absl::Span<const std::byte> RecordBytes() const;

  const std::string path_;
  Identity identity_;
  StorageDescription description_;
  std::unique_ptr<RowFiles> rows_;
  std::shared_ptr<AddressRange> record_range_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_DIRECTORY_READER_H_
