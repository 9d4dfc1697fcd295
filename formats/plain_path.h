// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_PLAIN_PATH_H_
#define RILL_FORMATS_PLAIN_PATH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill::formats_internal {

enum class PathKind { kMissing, kFile, kDirectory };

// The kind of `path`, links not followed. INVALID_ARGUMENT where it is a
// symbolic link or neither a file nor a directory: nothing below a directory
// that is loaded may lead out of it.
// Thread-safety: thread-safe.
absl::StatusOr<PathKind> LookAt(absl::string_view caller,
                                const std::string& path);

// "a/b.memmap": not absolute, no empty, "." or ".." part.
bool IsPlainRelativePath(absl::string_view path);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_PLAIN_PATH_H_
