// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_ZIP_LITTLE_ENDIAN_H_
#define RILL_FORMATS_ZIP_LITTLE_ENDIAN_H_

#include <bit>
#include <cstring>
#include <string>

namespace rill::formats_internal {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and are mapped as they are");

// An integer as it stands in a file, wherever it stands.
template <typename T>
T LoadLittle(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void AppendLittle(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_ZIP_LITTLE_ENDIAN_H_
