// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/crc32.h"

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/instruction_sets.h"

namespace rill::formats_internal {
namespace {

// Bit by bit, as ISO 3309 has it.
uint32_t SlowCrc32(absl::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
    }
  }
  return ~crc;
}

TEST(Crc32Test, KnownValues) {
  EXPECT_EQ(ExtendCrc32(0, ""), 0u);
  EXPECT_EQ(ExtendCrc32(0, "123456789"), 0xCBF43926u);
}

TEST(Crc32Test, EveryLengthAndEverySplitIsTheSame) {
  const Rng rng(5);
  std::string bytes;
  for (int i = 0; i < 500; ++i) {
    bytes += static_cast<char>(rng.UniformInt(0, i, 256));
  }
  ForEachTarget([&] {
    for (size_t size = 0; size <= bytes.size(); ++size) {
      const absl::string_view part = absl::string_view(bytes).substr(0, size);
      const uint32_t want = SlowCrc32(part);
      ASSERT_EQ(ExtendCrc32(0, part), want) << size;
      const size_t at = rng.UniformInt(1, size, size + 1);
      ASSERT_EQ(
          ExtendCrc32(ExtendCrc32(0, part.substr(0, at)), part.substr(at)),
          want)
          << size << " cut at " << at;
    }
  });
}

}  // namespace
}  // namespace rill::formats_internal
