// SPDX-License-Identifier: Apache-2.0
#include "rill/base/new_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/file_error.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

using base_internal::FileError;
using base_internal::ParentDirectory;

// OK where this process may make an entry in `directory`. Asked of the
// effective user, as mkdir and open are; access(2) would ask of the real one.
absl::Status CheckWritable(absl::string_view head,
                           const std::string& directory) {
  if (!IsDirectory(directory)) {
    return FailedPrecondition(head, ", where \"", directory,
                              "\" is a file, want a directory");
  }
  if (faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(head, ", want one that may be written: \"", directory,
                   "\": ", std::strerror(errno)));
}

// One that is there already is as good, also where another process has just
// made it.
absl::Status MakeOne(absl::string_view head, const std::string& directory) {
  if (mkdir(directory.c_str(), 0777) == 0 || IsDirectory(directory)) {
    return absl::OkStatus();
  }
  return FileError(errno, head, "make directory", directory);
}

std::string Head(absl::string_view caller, absl::string_view what,
                 const std::string& path) {
  return absl::StrCat(caller, ": ", what, ": got \"", path, "\"");
}

}  // namespace

absl::Status CheckNewDirectory(absl::string_view caller, absl::string_view what,
                               const std::string& path) {
  const std::string head = Head(caller, what, path);
  if (PathExists(path)) return CheckWritable(head, path);
  const std::string parent = ParentDirectory(path);
  if (PathExists(parent)) return CheckWritable(head, parent);
  const std::string above = ParentDirectory(parent);
  if (PathExists(above)) return CheckWritable(head, above);
  return NotFound(head, ", where neither \"", parent, "\" nor \"", above,
                  "\" is there, want one of them to be; make \"", parent,
                  "\" first");
}

absl::Status MakeNewDirectory(absl::string_view caller, absl::string_view what,
                              const std::string& path) {
  RILL_RETURN_IF_ERROR(CheckNewDirectory(caller, what, path));
  if (IsDirectory(path)) return absl::OkStatus();
  const std::string head = Head(caller, what, path);
  RILL_RETURN_IF_ERROR(MakeOne(head, ParentDirectory(path)));
  return MakeOne(head, path);
}

}  // namespace rill
