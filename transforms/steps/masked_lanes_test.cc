// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/steps/masked_lanes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill {
namespace {

std::vector<size_t> Found(const std::vector<uint8_t>& mask) {
  std::vector<size_t> lanes;
  ForMaskedLanes(mask, [&lanes](size_t lane) { lanes.push_back(lane); });
  return lanes;
}

TEST(ForMaskedLanesTest, FindsWhatALoopFinds) {
  const Rng rng(1);
  uint32_t draw = 0;
  for (size_t size = 0; size <= 200; ++size) {
    // From no lane to all of them.
    for (uint32_t percent : {0, 5, 50, 100}) {
      std::vector<uint8_t> mask(size);
      std::vector<size_t> expected;
      for (size_t lane = 0; lane < size; ++lane) {
        const uint64_t bits = rng.Bits64(0, draw++);
        if (bits % 100 >= percent) continue;
        // Any value but 0.
        mask[lane] = static_cast<uint8_t>(1 + (bits >> 32) % 255);
        expected.push_back(lane);
      }
      EXPECT_EQ(Found(mask), expected) << size << " lanes, " << percent << " %";
    }
  }
}

TEST(ForMaskedLanesTest, FindsEachValueInEachPlace) {
  for (size_t lane = 0; lane < 9; ++lane) {
    for (int value = 1; value < 256; ++value) {
      std::vector<uint8_t> mask(9);
      mask[lane] = static_cast<uint8_t>(value);
      EXPECT_EQ(Found(mask), std::vector<size_t>{lane}) << value;
    }
  }
}

}  // namespace
}  // namespace rill
