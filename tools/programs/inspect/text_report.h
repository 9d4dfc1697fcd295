// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_TEXT_REPORT_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_TEXT_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tools/programs/inspect/saved.h"

namespace rill::inspect {

// A report of saved data for people: a heading and a table of keys, and the
// same for every part of a directory of Rill's. Errors are those of reading a
// tensor.
// Thread-safety: thread-safe.
struct TextOptions {
  bool values = false;  // Smallest, largest, mean, first ones, count of NaN.
};
absl::StatusOr<std::string> TextReport(const Saved& saved,
                                       absl::string_view path,
                                       const TextOptions& options = {});

// `text` in one line that a terminal takes for text: control characters as
// "\x1b". For whatever a file may say.
std::string OneLine(absl::string_view text);

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_TEXT_REPORT_H_
