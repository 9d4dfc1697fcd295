// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_REPLACEABLE_H_
#define RILL_FORMATS_REPLACEABLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill {

// Whether a save may replace `directory`: nothing is there, or an empty
// directory, or one that holds the file `marker` ("rill.json", "meta.json") and
// so was saved before. No storage may live in it
// (docs/formats/storage_directory.md). Else FAILED_PRECONDITION says what is
// there, so that a slip in a path does not cost somebody's files. Where nothing
// is there, the parent must be, or the parent's own (base/new_directory.h has
// the errors). `caller` starts the message.
// Thread-safety: thread-safe.
absl::Status CheckReplaceable(absl::string_view caller,
                              const std::string& directory,
                              absl::string_view marker);

}  // namespace rill

#endif  // RILL_FORMATS_REPLACEABLE_H_
