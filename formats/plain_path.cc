// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/plain_path.h"

#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rill/base/status_macros.h"

namespace rill::formats_internal {

absl::StatusOr<PathKind> LookAt(absl::string_view caller,
                                const std::string& path) {
  struct stat info;
  // The system would see the part before the NUL, and find another file.
  if (path.find('\0') != std::string::npos) return PathKind::kMissing;
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) {
      return PathKind::kMissing;
    }
    return absl::ErrnoToStatus(
        errno, absl::StrCat(caller, ": cannot look up \"", path, "\""));
  }
  if (S_ISREG(info.st_mode)) return PathKind::kFile;
  if (S_ISDIR(info.st_mode)) return PathKind::kDirectory;
  return InvalidArgument(
      caller, ": \"", path, "\": got ",
      S_ISLNK(info.st_mode) ? "a symbolic link" : "a special file",
      ", want a file or a directory");
}

bool IsPlainRelativePath(absl::string_view path) {
  // StrSplit gives no parts at all for a view without an address.
  if (path.empty() || path.find('\0') != absl::string_view::npos) return false;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

}  // namespace rill::formats_internal
