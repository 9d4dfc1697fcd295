// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_ZIP_RAW_ZIP_H_
#define RILL_FORMATS_ZIP_RAW_ZIP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// For tests: zip files of entries that say of themselves whatever they like.
// Thread-safety: thread-safe.
struct RawEntry {
  std::string name = {};
  std::string packed = {};  // The bytes in the zip file.
  uint16_t method = 0;
  int64_t size = 0;  // Of the content.
  uint32_t crc = 0;
};

// Entries that say the truth.
RawEntry StoredEntry(absl::string_view name, absl::string_view content);
RawEntry DeflatedEntry(absl::string_view name, absl::string_view content);

std::string RawZip(const std::vector<RawEntry>& entries);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_ZIP_RAW_ZIP_H_
