// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/zip_record.h"

namespace rill::formats_internal {

absl::string_view ZipMethodName(uint16_t method) {
  switch (method) {
    case kZipStored:
      return "stored";
    case kZipDeflated:
      return "deflate";
    case 9:
      return "deflate64";
    case 12:
      return "bzip2";
    case 14:
      return "lzma";
    case 93:
      return "zstd";
    case 95:
      return "xz";
    default:
      return "unknown";
  }
}

}  // namespace rill::formats_internal
