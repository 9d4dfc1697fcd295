// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_ZIP_CRC32_H_
#define RILL_FORMATS_ZIP_CRC32_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// The CRC-32 of zip files (ISO 3309, polynomial 0xEDB88320 reflected) of
// what `crc` is of (0: nothing) followed by `bytes`. Not CRC-32C, which
// Abseil has. Thread-safety: thread-safe.
//
// Cost: the pinned zlib's crc32 (1.3.1) gives the same values, but is slower
// (crc32_benchmark). GB/s of zlib's and of this, each the median of 9 runs in
// turns (g++ -O2, Xeon with PCLMULQDQ, busy): 64 bytes 0.13 and 1.0, 4 KiB 0.69
// and 23, 1 MiB 0.71 and 22.
uint32_t ExtendCrc32(uint32_t crc, absl::string_view bytes);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_ZIP_CRC32_H_
