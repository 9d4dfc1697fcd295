// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_ZIP_ZIP_RECORD_H_
#define RILL_FORMATS_ZIP_ZIP_RECORD_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// The records of a zip file: what they start with and how long they are
// without names, fields and comments. docs/formats/tdz.md.
inline constexpr uint32_t kZipLocalSignature = 0x04034B50;
inline constexpr uint64_t kZipLocalBytes = 30;
inline constexpr uint32_t kZipCentralSignature = 0x02014B50;
inline constexpr uint64_t kZipCentralBytes = 46;
inline constexpr uint32_t kZipEndSignature = 0x06054B50;
inline constexpr uint64_t kZipEndBytes = 22;
inline constexpr uint32_t kZip64EndSignature = 0x06064B50;
inline constexpr uint64_t kZip64EndBytes = 56;
inline constexpr uint32_t kZip64LocatorSignature = 0x07064B50;
inline constexpr uint64_t kZip64LocatorBytes = 20;

inline constexpr uint16_t kZip64FieldId = 0x0001;
inline constexpr uint16_t kZipPaddingFieldId = 0x6474;  // "td".
inline constexpr int64_t kZipAlignment = 64;  // Of the contents it aligns.

inline constexpr uint16_t kZipStored = 0;
inline constexpr uint16_t kZipDeflated = 8;
// "deflate" for 8, "unknown" for what has no name here.
absl::string_view ZipMethodName(uint16_t method);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_ZIP_ZIP_RECORD_H_
