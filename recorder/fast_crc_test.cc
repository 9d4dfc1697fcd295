// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/fast_crc.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/crc/crc32c.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace rill::recorder_internal {
namespace {

TEST(FastCrcTest, IsAbseilsOfAllLengthsAndPlaces) {
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes.push_back(static_cast<char>(37 * i));
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; size < 130; ++size) {
      const auto piece = absl::string_view(bytes).substr(begin, size);
      for (const uint32_t before : {0u, 0x12345678u}) {
        EXPECT_EQ(ExtendCrc(absl::crc32c_t{before}, piece),
                  absl::ExtendCrc32c(absl::crc32c_t{before}, piece));
      }
    }
  }
}

}  // namespace
}  // namespace rill::recorder_internal
