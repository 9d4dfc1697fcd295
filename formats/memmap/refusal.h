// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_REFUSAL_H_
#define RILL_FORMATS_MEMMAP_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/formats/memmap_options.h"

namespace rill::formats_internal {

// The result for an entry that cannot be read: INVALID_ARGUMENT, or a line in
// `options.refused`. Thread-safety: thread-safe for different options.
absl::Status RefuseEntry(const LoadMemmapOptions& options,
                         absl::string_view key, absl::string_view where,
                         absl::string_view reason);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_REFUSAL_H_
