// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/block_pool.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/testing/status_matchers.h"

namespace rill::ranks_internal {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(BlockPoolTest, MemoryThatNobodyHasIsUsedAgain) {
  BlockPool pool(8 * kMiB);
  RILL_ASSERT_OK_AND_ASSIGN(auto block, pool.Take(kMiB));
  const std::byte* const first = block->data();
  RILL_ASSERT_OK_AND_ASSIGN(const auto other, pool.Take(kMiB));
  EXPECT_NE(other->data(), first);
  block.reset();
  // A little smaller.
  RILL_ASSERT_OK_AND_ASSIGN(block, pool.Take(kMiB - 64));
  EXPECT_EQ(block->data(), first);
  EXPECT_EQ(block->size_bytes(), kMiB - 64);
}

TEST(BlockPoolTest, BlocksOfOtherSizesStay) {
  BlockPool pool(8 * kMiB);
  RILL_ASSERT_OK_AND_ASSIGN(auto block, pool.Take(2 * kMiB));
  const std::byte* const first = block->data();
  block.reset();
  RILL_ASSERT_OK_AND_ASSIGN(const auto larger, pool.Take(2 * kMiB + 64));
  EXPECT_NE(larger->data(), first);
  RILL_ASSERT_OK_AND_ASSIGN(const auto smaller, pool.Take(kMiB));
  EXPECT_NE(smaller->data(), first);
  RILL_ASSERT_OK_AND_ASSIGN(const auto same, pool.Take(2 * kMiB));
  EXPECT_EQ(same->data(), first);
}

TEST(BlockPoolTest, NoMoreThanItsBytesAreKept) {
  BlockPool pool(2 * kMiB);
  std::vector<std::shared_ptr<Buffer>> blocks;
  std::vector<const std::byte*> places;
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(blocks.emplace_back(), pool.Take(kMiB));
    places.push_back(blocks.back()->data());
  }
  EXPECT_EQ(pool.kept_bytes(), 0);
  blocks.clear();
  EXPECT_EQ(pool.kept_bytes(), 2 * kMiB);
  // The last two that came back, the last one first.
  RILL_ASSERT_OK_AND_ASSIGN(const auto one, pool.Take(kMiB));
  RILL_ASSERT_OK_AND_ASSIGN(const auto two, pool.Take(kMiB));
  EXPECT_EQ(one->data(), places[3]);
  EXPECT_EQ(two->data(), places[2]);
  EXPECT_EQ(pool.kept_bytes(), 0);
}

TEST(BlockPoolTest, BlocksOutliveThePool) {
  auto pool = std::make_unique<BlockPool>(kMiB);
  RILL_ASSERT_OK_AND_ASSIGN(const auto block, pool->Take(kMiB));
  pool.reset();
  std::memset(block->data(), 1, static_cast<size_t>(block->size_bytes()));
}

TEST(BlockPoolTest, BlocksHaveAnySize) {
  BlockPool pool(kMiB);
  for (const int64_t bytes : {int64_t{0}, int64_t{64}, 2 * kMiB}) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto block, pool.Take(bytes));
    EXPECT_EQ(block->size_bytes(), bytes);
  }
  // A small one is not worth keeping.
  RILL_EXPECT_OK(pool.Take(64).status());
  EXPECT_EQ(pool.kept_bytes(), 0);
  EXPECT_FALSE(pool.Take(-1).ok());
}

}  // namespace
}  // namespace rill::ranks_internal
