// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_ZIP_INFLATE_H_
#define RILL_FORMATS_ZIP_INFLATE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/formats/zip/zip_directory.h"

namespace rill::formats_internal {

// The content of the deflated `entry` of the zip file `zip`, both as
// ParseZipDirectory has them: fills `out` with its first bytes, of which it has
// `entry.size` >= out.size(). All of it is inflated and checked either way.
// `where` starts the messages and should name the entry.
//
// DATA_LOSS where the stream is broken, ends too early or late for the size or
// for the bytes in the file, or where the checksum does not fit. `out` is then
// arbitrary. RESOURCE_EXHAUSTED where there is no memory for zlib's window.
// Thread-safety: thread-safe. Cost: O(entry.size), about 100 KiB of memory.
absl::Status InflateEntry(absl::string_view where, const ZipEntry& entry,
                          absl::string_view zip, absl::Span<char> out);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_ZIP_INFLATE_H_
