// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_JSON_UTF8_H_
#define RILL_FORMATS_JSON_UTF8_H_

#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// Whether `text` is UTF-8 as RFC 3629 has it (no overlong forms, no
// surrogates), which JSON wants of every name. Thread-safety: thread-safe.
bool IsUtf8(absl::string_view text);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_JSON_UTF8_H_
