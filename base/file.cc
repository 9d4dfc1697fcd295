// SPDX-License-Identifier: Apache-2.0
#include "rill/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rill/base/fault_point.h"
#include "rill/base/file_error.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

using base_internal::FileDescriptor;
using base_internal::FileError;

// Reads until the end of the file or `limit` bytes. `expected`: how many there
// may be, so that a small file costs no large buffer.
absl::Status ReadUpTo(int fd, const std::string& path, int64_t expected,
                      int64_t limit, std::string* content) {
  constexpr int64_t kLeast = 4096;
  int64_t got = 0;
  while (got < limit) {
    if (got == static_cast<int64_t>(content->size())) {
      // One byte more than expected, to meet the end without a second buffer.
      const int64_t more =
          std::max({got, std::min(expected, limit - 1) - got + 1, kLeast});
      content->resize(got + std::min(limit - got, more));
    }
    RILL_RETURN_IF_ERROR(FaultPoint("file.read", path));
    const ssize_t n = read(fd, content->data() + got, content->size() - got);
    if (n < 0 && errno != EINTR) {
      return FileError(errno, "ReadFile", "read", path);
    }
    if (n == 0) break;
    if (n > 0) got += n;
  }
  content->resize(got);
  return absl::OkStatus();
}

absl::StatusOr<struct stat> Stat(const std::string& path,
                                 absl::string_view function) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return FileError(errno, function, "look up", path);
  }
  return info;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes) {
  if (max_bytes < 0) {
    return InvalidArgument("ReadFile: max_bytes: got ", max_bytes,
                           ", want >= 0");
  }
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return FileError(errno, "ReadFile", "open", path);
  struct stat info;
  if (fstat(file.get(), &info) != 0) {
    return FileError(errno, "ReadFile", "look up", path);
  }
  if (S_ISDIR(info.st_mode)) {
    return FileError(EISDIR, "ReadFile", "read", path);
  }
  // One byte more than allowed, so that a file that grows is noticed too.
  const int64_t limit =
      std::max<int64_t>(max_bytes, max_bytes + (max_bytes < INT64_MAX));
  std::string content;
  if (info.st_size <= max_bytes) {
    RILL_RETURN_IF_ERROR(
        ReadUpTo(file.get(), path, info.st_size, limit, &content));
  }
  // The file may have grown between fstat and the last read.
  const int64_t size =
      std::max<int64_t>(info.st_size, static_cast<int64_t>(content.size()));
  if (size > max_bytes) {
    return InvalidArgument("ReadFile: size of \"", path, "\": got ", size,
                           " bytes, want <= ", max_bytes);
  }
  if (S_ISREG(info.st_mode) &&
      static_cast<int64_t>(content.size()) < info.st_size) {
    return DataLoss("ReadFile: content of \"", path, "\": got ", content.size(),
                    " bytes, want ", info.st_size,
                    "; the file shrank while it was read");
  }
  return content;
}

absl::StatusOr<int64_t> FileSize(const std::string& path) {
  RILL_ASSIGN_OR_RETURN(const struct stat info, Stat(path, "FileSize"));
  if (S_ISDIR(info.st_mode)) {
    return FileError(EISDIR, "FileSize", "measure", path);
  }
  return static_cast<int64_t>(info.st_size);
}

bool PathExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::Status CreateDirectories(const std::string& path) {
  if (IsDirectory(path)) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && IsDirectory(path)) return absl::OkStatus();
  return FileError(error ? error.value() : EEXIST, "CreateDirectories",
                   "make directory", path);
}

absl::StatusOr<std::vector<std::string>> ListDirectory(
    const std::string& path) {
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) {
    return FileError(errno, "ListDirectory", "open", path);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(directory)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int error = errno;
  closedir(directory);
  if (error != 0) return FileError(error, "ListDirectory", "read", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return FileError(error.value(), "RemoveAll", "remove", path);
  return absl::OkStatus();
}

std::string JoinPath(absl::string_view a, absl::string_view b) {
  if (a.empty()) return std::string(b);
  if (b.empty()) return std::string(a);
  while (absl::ConsumePrefix(&b, "/")) {
  }
  return absl::StrCat(a, a.back() == '/' ? "" : "/", b);
}

}  // namespace rill
