// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_NEW_DIRECTORY_H_
#define RILL_BASE_NEW_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill {

// The rule for directories that users name: a missing one is made inside a
// directory that exists and may be written, and so is its parent, but nothing
// above. A slip in a path so costs a message, not a tree of directories.
//
// Errors read "<caller>: <what>: got "<path>", ...", with `what` the option
// ("Options::directory"). NOT_FOUND where the parent of the parent is missing
// too; the text names what to make first. PERMISSION_DENIED where the
// directory, or the one to make it in, may not be written. FAILED_PRECONDITION
// where a file has that name.
//
// Thread-safety: thread-safe.

// Whether MakeNewDirectory(caller, what, path) may succeed; makes nothing.
absl::Status CheckNewDirectory(absl::string_view caller, absl::string_view what,
                               const std::string& path);
// `path` is a directory then, which may be written; it may have been before.
absl::Status MakeNewDirectory(absl::string_view caller, absl::string_view what,
                              const std::string& path);

}  // namespace rill

#endif  // RILL_BASE_NEW_DIRECTORY_H_
