// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_APPEND_FILE_H_
#define RILL_TELEMETRY_APPEND_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill::telemetry_internal {

// A file that grows record by record: what the writers of this package share.
// Errors begin with `who`, the class that the caller knows.
//
// Thread-safety: thread-compatible.
// Cost: one write call a record, without buffering.
class AppendFile {
 public:
  // A new file. FAILED_PRECONDITION if it exists; NOT_FOUND or
  // PERMISSION_DENIED where its folder cannot be written.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Create(
      absl::string_view who, const std::string& path);
  // Continues a file at `size_bytes` and cuts off what lies behind. DATA_LOSS,
  // with the file unchanged, if it is shorter.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Reopen(
      absl::string_view who, const std::string& path, int64_t size_bytes);

  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // All or nothing: with an error (RESOURCE_EXHAUSTED on a full disk) the file
  // ends where it ended before.
  absl::Status Append(absl::string_view record);

  // What was appended is on the disk when this returns.
  absl::Status Sync() const;

  const std::string& path() const { return path_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  AppendFile(absl::string_view who, std::string path, int fd,
             int64_t size_bytes);
  absl::Status ErrnoStatus(absl::string_view what) const;

  std::string who_;
  std::string path_;
  int fd_;
  int64_t size_bytes_;
};

}  // namespace rill::telemetry_internal

#endif  // RILL_TELEMETRY_APPEND_FILE_H_
