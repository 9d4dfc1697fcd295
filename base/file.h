// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_FILE_H_
#define RILL_BASE_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill {

// Whole-file and directory operations with statuses that quote the path.
// Thread-safety: thread-safe. Fault points: "file.open", "file.write",
// "file.sync", "file.rename", "file.read".
//
// Codes: NOT_FOUND (no such file), FAILED_PRECONDITION (exists, or is of the
// wrong kind), RESOURCE_EXHAUSTED (disk full: names asked and free bytes),
// PERMISSION_DENIED, DATA_LOSS (shorter than announced).

// Reads at most `max_bytes`; a larger file is INVALID_ARGUMENT.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes = int64_t{1} << 40);

// Writes `path` so that a reader sees the old or the new content, never a
// part: temporary file beside it, fsync, rename, fsync of the directory. On
// failure the old content stays and the temporary file is gone. Where the file
// system has neither an exchange of names nor hard links (FAT), the new content
// stays after a failed fsync of the directory, and the error says so.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content);

// Size in bytes.
absl::StatusOr<int64_t> FileSize(const std::string& path);
bool PathExists(const std::string& path);
bool IsDirectory(const std::string& path);

// Like mkdir -p.
absl::Status CreateDirectories(const std::string& path);
// Names (not paths) in a directory, sorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);
// Removes a file or a whole tree; symbolic links are removed, not followed.
// OK where nothing is there.
absl::Status RemoveAll(const std::string& path);

// Runs `fill(temporary path)`, which makes a file there, and puts that file in
// the place of `path` as WriteFileAtomically does.
absl::Status ReplaceFile(
    const std::string& path,
    const std::function<absl::Status(const std::string&)>& fill);

// Runs `fill(temporary directory)` and then puts that directory in the place of
// `path` (which may exist) so that `path` always is the old or the new one.
// On failure `path` is as before. The new tree is synced first.
// Where the file system cannot exchange two names, an old directory is moved
// aside first, and a reader may find neither for a moment.
absl::Status ReplaceDirectory(
    const std::string& path,
    const std::function<absl::Status(const std::string&)>& fill);

// "a" + "b/c" -> "a/b/c".
std::string JoinPath(absl::string_view a, absl::string_view b);

}  // namespace rill

#endif  // RILL_BASE_FILE_H_
