// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_RECORDER_FAST_CRC_H_
#define RILL_RECORDER_FAST_CRC_H_

#include "absl/crc/crc32c.h"
#include "absl/strings/string_view.h"

namespace rill::recorder_internal {

// As absl::ExtendCrc32c, by the processor's instruction where it has one.
// Abseil takes that only in programs that are built for PCLMUL, and its tables
// take several times as long. Thread-safety: thread-safe.
absl::crc32c_t ExtendCrc(absl::crc32c_t crc, absl::string_view bytes);

}  // namespace rill::recorder_internal

#endif  // RILL_RECORDER_FAST_CRC_H_
