// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_KEY_H_
#define RILL_TENSORDICT_KEY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill {

// Keys name entries of a TensorDict. In text a key is its components joined by
// "/": "next/observation". A "/" or "\" inside a component is written "\/",
// "\\". All functions take the text form; these make it and take it apart.
//
// Thread-safety: immutable.

// Text of the key with these components: {"a/b c", "x"} -> "a\/b c/x".
std::string JoinKey(absl::Span<const absl::string_view> components);
// One component, escaped.
std::string EscapeKeyComponent(absl::string_view component);

// The components of a text. INVALID_ARGUMENT if the text is empty, a component
// is empty ("a//b", "/a"), or an escape is broken.
absl::StatusOr<std::vector<std::string>> SplitKey(absl::string_view key);
// The errors of SplitKey, without the components.
absl::Status CheckKey(absl::string_view key);

// True if it is one component without escapes, and so a valid key.
inline bool IsPlainKey(absl::string_view key) {
  for (const char c : key) {
    if (c == '/' || c == '\\') return false;
  }
  return !key.empty();
}

// Splits off the first component without copying: `head` is still escaped,
// `rest` is empty for the last one. There is one text for each component, so
// escaped components may be compared as they are. The key is not checked.
// Cost: O(|head|), no allocation.
void SplitKeyHead(absl::string_view key, absl::string_view* head,
                  absl::string_view* rest);

// At most 40 of these keys, quoted, for a message; "none" without any.
std::string ListKeys(absl::Span<const std::string> keys);

}  // namespace rill

#endif  // RILL_TENSORDICT_KEY_H_
