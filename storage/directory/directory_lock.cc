// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"

namespace rill::storage_internal {
namespace {

using base_internal::FileError;

// The process that wrote its number there, as text for a message.
std::string HolderOf(int fd) {
  char text[32];
  const ssize_t bytes = pread(fd, text, sizeof(text), 0);
  int64_t pid = 0;
  if (bytes > 0 && absl::SimpleAtoi(absl::string_view(text, bytes), &pid)) {
    return absl::StrCat("process ", pid);
  }
  return "another process";
}

}  // namespace

std::string OwnerOf(const std::string& directory) {
  const base_internal::FileDescriptor file(
      open(JoinPath(directory, kLockFile).c_str(),
           O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return HolderOf(file.get());
}

absl::StatusOr<std::unique_ptr<DirectoryLock>> DirectoryLock::Acquire(
    absl::string_view caller, const std::string& directory) {
  const std::string path = JoinPath(directory, kLockFile);
  RILL_RETURN_IF_ERROR(FaultPoint("file.lock", path));
  // No symbolic link is followed out of the directory, and a FIFO in the place
  // of the file does not block the open.
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
           0666);
  if (fd < 0) return FileError(errno, caller, "open", path);
  std::unique_ptr<DirectoryLock> lock(new DirectoryLock(fd));
  RILL_RETURN_IF_ERROR(
      base_internal::RegularFileSize(fd, caller, path).status());
  // flock, not fcntl: its lock is of this open file. Closing another descriptor
  // of the file does not release it, and a second owner in the same process is
  // refused.
  int error;
  do {
    error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == EWOULDBLOCK) {
    return FailedPrecondition(
        caller, ": owner of \"", directory, "\": got ", HolderOf(fd),
        ", want none; one at a time writes there, close it first");
  }
  if (error != 0) return FileError(error, caller, "lock", path);
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) !=
                                   static_cast<ssize_t>(pid.size())) {
    return FileError(errno, caller, "write", path,
                     static_cast<int64_t>(pid.size()));
  }
  return lock;
}

}  // namespace rill::storage_internal
