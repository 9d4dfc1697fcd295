// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_FILE_TREE_H_
#define RILL_FORMATS_FILE_TREE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// For tests of what is on the disk.
// Thread-safety: thread-safe for different directories.

// The files below `directory` as relative paths, sorted; empty on failure.
std::vector<std::string> ListFiles(const std::string& directory);

// Copies the files below `from` to the new directory `to`. Links are followed:
// a test's data may be links, and loading refuses those.
absl::Status CopyTree(const std::string& from, const std::string& to);

// Writes a file in place, without the care (and the syncs) of the library.
void WriteInPlace(const std::string& path, absl::string_view content);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_FILE_TREE_H_
