// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_FILE_ERROR_H_
#define RILL_BASE_FILE_ERROR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill::base_internal {

// The status for `error` (an errno) that `function` met when it tried to do
// `what` ("write", "open") to `path`. A full disk names `asked_bytes` and what
// the file system has free. Codes: see file.h. Thread-safety: thread-safe.
absl::Status FileError(int error, absl::string_view function,
                       absl::string_view what, const std::string& path,
                       int64_t asked_bytes = 0);

// The directory that `path` lies in ("." where it names none).
std::string ParentDirectory(const std::string& path);

// Bytes of the open file. FAILED_PRECONDITION where it is no regular file.
absl::StatusOr<int64_t> RegularFileSize(int fd, absl::string_view function,
                                        const std::string& path);

// Whether `bytes` of new blocks cannot fit where the open file lies. Ask before
// reserving them: ext4 fills the whole disk, for everybody, before it says that
// it is too small.
bool LacksSpaceFor(int fd, int64_t bytes);

// fallocate, again after a signal; 0 or the errno. ReserveBlocks writes to
// every block where the file system has no fallocate.
int Fallocate(int fd, int mode, int64_t offset, int64_t bytes);
int ReserveBlocks(int fd, int mode, int64_t offset, int64_t bytes);

// Closes a file descriptor when it goes. Thread-compatible.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace rill::base_internal

#endif  // RILL_BASE_FILE_ERROR_H_
