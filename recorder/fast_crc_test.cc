// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/fast_crc.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace rill::recorder_internal {
namespace {

TEST(FastCrcTest, IsAbseilsOfAllLengthsAndPlaces) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) {
    bytes.push_back(static_cast<char>(37 * i + i / 251));
  }
  // The long ones are taken three runs at a time.
  std::vector<size_t> sizes = {1535, 1536, 1537, 1700, 3072, 4991};
  for (size_t size = 0; size < 400; ++size) sizes.push_back(size);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (const size_t size : sizes) {
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
