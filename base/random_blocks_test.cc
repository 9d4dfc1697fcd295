// SPDX-License-Identifier: Apache-2.0
#include "rill/base/random_blocks.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "rill/testing/instruction_sets.h"

namespace rill {
namespace {

TEST(RandomBlocksTest, Example) {
  const Rng rng(/*seed=*/7);
  std::vector<Rng::Block> blocks(256);
  RandomBlocks(rng, /*batch=*/3, /*first_draw=*/0, absl::MakeSpan(blocks));
  EXPECT_EQ(blocks[200], rng.Bits(3, 200));
}

void CheckBlocks() {
  const Rng rngs[] = {Rng(0), Rng(0x123456789abcdef0, RngStream::kSampler, 9),
                      Rng(~uint64_t{0}, RngStream::kSpec, 0xffff)};
  const uint64_t batches[] = {0, 5, 0xfedcba9876543210, ~uint64_t{0}};
  const uint32_t firsts[] = {0, 77, 0x7fffffff, 0xfffffffd};
  for (const Rng& rng : rngs) {
    for (const uint64_t batch : batches) {
      for (const uint32_t first : firsts) {
        for (size_t count = 0; count < 40; ++count) {
          std::vector<Rng::Block> blocks(count);
          RandomBlocks(rng, batch, first, absl::MakeSpan(blocks));
          for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(blocks[i],
                      rng.Bits(batch, first + static_cast<uint32_t>(i)))
                << i << " of " << count;
          }
        }
      }
    }
  }
}

TEST(RandomBlocksTest, AreThoseOneByOneForAnyCountAndCounter) {
  ForEachTarget(CheckBlocks);
}

}  // namespace
}  // namespace rill
