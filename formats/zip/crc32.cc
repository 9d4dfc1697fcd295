// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/crc32.h"

#include <array>
#include <cstddef>

#include "rill/formats/zip/little_endian.h"

namespace rill::formats_internal {
namespace {

constexpr int kSlices = 16;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: the CRC of byte b followed by k bytes of zero.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
    }
    tables[0][b] = crc;
  }
  for (int k = 1; k < kSlices; ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      const uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

// Four bytes, the first of which has `after` + 3 bytes behind it.
uint32_t Four(uint32_t word, int after) {
  return kTables[after + 3][word & 0xFF] ^
         kTables[after + 2][(word >> 8) & 0xFF] ^
         kTables[after + 1][(word >> 16) & 0xFF] ^ kTables[after][word >> 24];
}

}  // namespace

uint32_t ExtendCrc32(uint32_t crc, absl::string_view bytes) {
  crc = ~crc;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kSlices; left -= kSlices, at += kSlices) {
    crc = Four(crc ^ LoadLittle<uint32_t>(at), 12) ^
          Four(LoadLittle<uint32_t>(at + 4), 8) ^
          Four(LoadLittle<uint32_t>(at + 8), 4) ^
          Four(LoadLittle<uint32_t>(at + 12), 0);
  }
  for (; left > 0; --left, ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(*at)) & 0xFF];
  }
  return ~crc;
}

}  // namespace rill::formats_internal
