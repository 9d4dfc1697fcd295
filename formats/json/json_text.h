// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_JSON_JSON_TEXT_H_
#define RILL_FORMATS_JSON_JSON_TEXT_H_

#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// How deep the brackets of `text` nest at most, those in strings left out.
// Needs no stack, so it can be asked before a parser is let loose.
// Thread-safety: thread-safe. Cost: O(text).
int JsonDepth(absl::string_view text);

inline constexpr int kMaxJsonDepth = 64;

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_JSON_JSON_TEXT_H_
