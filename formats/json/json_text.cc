// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/json/json_text.h"

#include <algorithm>

namespace rill::formats_internal {

// A text that closes more than it opened is undercounted. No parser goes past
// the bracket that is too many, so the depth before it is what counts.
int JsonDepth(absl::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest;
}

}  // namespace rill::formats_internal
