// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/refusal.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::formats_internal {

absl::Status RefuseEntry(const LoadMemmapOptions& options,
                         absl::string_view key, absl::string_view where,
                         absl::string_view reason) {
  std::string text = absl::StrCat(where, ": ", reason);
  if (options.refused == nullptr) {
    return InvalidArgument(text,
                           "; set LoadMemmapOptions::refused to load the rest");
  }
  options.refused->push_back({std::string(key), std::move(text)});
  return absl::OkStatus();
}

}  // namespace rill::formats_internal
