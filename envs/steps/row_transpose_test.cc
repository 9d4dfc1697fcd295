// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/row_transpose.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace rill {
namespace {

// Numbers that repeat only after 251 bytes, which no width divides.
std::vector<std::byte> Rows(int64_t bytes) {
  std::vector<std::byte> rows(bytes);
  for (int64_t i = 0; i < bytes; ++i) {
    rows[i] = static_cast<std::byte>(i % 251);
  }
  return rows;
}

TEST(RowTransposeTest, WritesWhatALoopOverRowsWrites) {
  constexpr int64_t kGap = 5;  // Bytes between lanes that stay as they are.
  for (int64_t width = 1; width <= 70; ++width) {
    for (const int64_t steps : {0, 1, 2, 5, 16, 17, 35}) {
      for (const int64_t lanes : {0, 1, 2, 7, 16, 33, 50}) {
        const std::vector<std::byte> from = Rows(steps * lanes * width);
        const int64_t lane_bytes = steps * width + kGap;
        std::vector<std::byte> want(lanes * lane_bytes + kGap, std::byte{255});
        std::vector<std::byte> got = want;
        for (int64_t step = 0; step < steps; ++step) {
          for (int64_t lane = 0; lane < lanes; ++lane) {
            std::memcpy(want.data() + lane * lane_bytes + step * width,
                        from.data() + (step * lanes + lane) * width, width);
          }
        }
        TransposeRows({.from = from.data(),
                       .steps = steps,
                       .lanes = lanes,
                       .width = width,
                       .to = got.data(),
                       .to_lane_bytes = lane_bytes});
        ASSERT_EQ(got, want)
            << "width " << width << ", steps " << steps << ", lanes " << lanes;
      }
    }
  }
}

}  // namespace
}  // namespace rill
