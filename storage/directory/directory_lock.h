// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DIRECTORY_DIRECTORY_LOCK_H_
#define RILL_STORAGE_DIRECTORY_DIRECTORY_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/file_error.h"

namespace rill::storage_internal {

inline constexpr char kLockFile[] = "rill.lock";

// The process that has a directory's lock, or had it last, as text for a
// message: "process 12", or "another process".
std::string OwnerOf(const std::string& directory);

// The right to write to a directory: one process has it, and one object in it.
// The kernel gives the lock back when the owner goes, however it goes. Only a
// child that was forked from it and lives on without exec would hold it still.
// Readers need no lock.
//
// Thread-safety: immutable. Fault point: "file.lock".
class DirectoryLock {
 public:
  // Takes the lock of an existing directory (a file of its own in it, which
  // stays). FAILED_PRECONDITION where another has it: names the directory and
  // the process. `caller` starts the message.
  static absl::StatusOr<std::unique_ptr<DirectoryLock>> Acquire(
      absl::string_view caller, const std::string& directory);

 private:
  explicit DirectoryLock(int fd) : file_(fd) {}

  base_internal::FileDescriptor file_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DIRECTORY_DIRECTORY_LOCK_H_
