// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_ZIP_ZIP_DIRECTORY_H_
#define RILL_FORMATS_ZIP_ZIP_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// A file inside a zip file. Thread-safety: thread-compatible.
struct ZipEntry {
  std::string name;  // "next/obs.memmap": plain, relative, UTF-8.
  uint32_t crc = 0;  // Of the content, as written; nothing here looks at it.
  // Its bytes in the zip file lie inside that and overlap no other's: the
  // content itself, or a deflate stream of it (inflate.h).
  int64_t offset = 0;
  int64_t packed_size = 0;
  int64_t size = 0;  // Of the content: no more than the stream can expand to.
  bool is_deflated = false;
};

// The files in the zip file whose bytes are `zip`, in the order of its central
// directory; entries for folders are left out. `where` starts the messages.
//
// DATA_LOSS where it is no zip file, was cut short, or contradicts itself.
// Contradictions are wrong sizes and offsets, names twice, headers that differ,
// contents that overlap, and more than a deflate stream of that size can hold.
// INVALID_ARGUMENT where it asks for what is refused: other compression,
// encryption, several volumes, names that lead out. Thread-safety: thread-safe.
// Cost: O(n log n) for n entries; reads the headers and the last 64 KiB only.
absl::StatusOr<std::vector<ZipEntry>> ParseZipDirectory(absl::string_view where,
                                                        absl::string_view zip);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_ZIP_ZIP_DIRECTORY_H_
