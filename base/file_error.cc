// SPDX-License-Identifier: Apache-2.0
#include "rill/base/file_error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "rill/base/disk_space.h"
#include "rill/base/status_macros.h"

namespace rill::base_internal {
namespace {

// The codes that file.h promises; Abseil's mapping decides on the rest. It
// gives ALREADY_EXISTS for EEXIST, OUT_OF_RANGE for EFBIG, UNKNOWN for EIO and
// ELOOP.
absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case ELOOP:
    case ETXTBSY:
      return absl::StatusCode::kFailedPrecondition;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    case EIO:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::ErrnoToStatusCode(error);
  }
}

// Free bytes for ordinary users where `path` lies or would lie; -1: unknown.
int64_t FreeBytes(const std::string& path) {
  std::optional<int64_t> bytes = FreeDiskBytes(path);
  // A file that could not be made has no file system; its directory has one.
  if (!bytes.has_value()) bytes = FreeDiskBytes(ParentDirectory(path));
  return bytes.value_or(-1);
}

}  // namespace

absl::Status FileError(int error, absl::string_view function,
                       absl::string_view what, const std::string& path,
                       int64_t asked_bytes) {
  std::string text = absl::StrCat(function, ": cannot ", what, " \"", path,
                                  "\": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) {
    absl::StrAppend(&text, ": asked ", asked_bytes, " bytes, file system has ",
                    FreeBytes(path),
                    " bytes free; free some space or use another path");
  }
  return absl::Status(CodeOf(error), text);
}

std::string ParentDirectory(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  const size_t slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

absl::StatusOr<int64_t> RegularFileSize(int fd, absl::string_view function,
                                        const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError(errno, function, "look up", path);
  if (S_ISREG(info.st_mode)) return info.st_size;
  return FailedPrecondition(function, ": kind of \"", path,
                            "\": want a regular file");
}

bool LacksSpaceFor(int fd, int64_t bytes) {
  struct statvfs fs;
  // Some file systems do not know how large they are, and say 0.
  return fstatvfs(fd, &fs) == 0 && fs.f_blocks != 0 &&
         bytes / static_cast<int64_t>(fs.f_frsize) >
             static_cast<int64_t>(fs.f_bavail);
}

int Fallocate(int fd, int mode, int64_t offset, int64_t bytes) {
  int error;
  do {
    error = fallocate(fd, mode, offset, bytes) == 0 ? 0 : errno;
  } while (error == EINTR);
  return error;
}

int ReserveBlocks(int fd, int mode, int64_t offset, int64_t bytes) {
  const int error = Fallocate(fd, mode, offset, bytes);
  // posix_fallocate has no mode and may lengthen the file. A piece inside the
  // file, all that FALLOC_FL_KEEP_SIZE is used for, does not.
  return error == EOPNOTSUPP ? posix_fallocate(fd, offset, bytes) : error;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace rill::base_internal
