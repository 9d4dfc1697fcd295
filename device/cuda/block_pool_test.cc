// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/block_pool.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class BlockPoolTest : public ::testing::Test {
 protected:
  ~BlockPoolTest() override { EXPECT_TRUE(live_.empty()); }

  BlockPool Make(int64_t most_unused_bytes) {
    return BlockPool(
        most_unused_bytes,
        [this](int64_t bytes) -> absl::StatusOr<void*> {
          if (left_ < bytes) return absl::ResourceExhaustedError("none left");
          ++allocations_;
          void* const data = std::malloc(static_cast<size_t>(bytes));
          live_.insert(data);
          sizes_.push_back(bytes);
          return data;
        },
        [this](void* data) {
          EXPECT_EQ(live_.erase(data), 1);
          std::free(data);
        });
  }

  std::set<void*> live_;
  std::vector<int64_t> sizes_;
  int64_t allocations_ = 0;
  int64_t left_ = int64_t{1} << 40;
};

TEST_F(BlockPoolTest, ASteadyStateTakesNoMemory) {
  BlockPool pool = Make(64 * kMiB);
  for (int round = 0; round < 10; ++round) {
    std::vector<void*> blocks;
    for (int64_t bytes = 1; bytes <= kMiB; bytes *= 3) {
      RILL_ASSERT_OK_AND_ASSIGN(void* const block, pool.Allocate(bytes));
      blocks.push_back(block);
    }
    // Each is used by one at a time.
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(),
              blocks.size());
    int64_t bytes = 1;
    for (void* const block : blocks) {
      pool.Free(block, bytes);
      bytes *= 3;
    }
    EXPECT_EQ(allocations_, std::ssize(blocks)) << round;
  }
}

TEST_F(BlockPoolTest, BlocksAreAsLargeAsWasAsked) {
  BlockPool pool = Make(0);
  for (const int64_t bytes :
       {int64_t{1}, BlockPool::kMinBytes, BlockPool::kMinBytes + 1,
        BlockPool::kMaxBytes, BlockPool::kMaxBytes + 1}) {
    RILL_ASSERT_OK_AND_ASSIGN(void* const block, pool.Allocate(bytes));
    EXPECT_GE(sizes_.back(), bytes);
    EXPECT_LE(sizes_.back(), std::max(2 * bytes, BlockPool::kMinBytes));
    pool.Free(block, bytes);
  }
}

TEST_F(BlockPoolTest, KeepsNoMoreThanItMay) {
  BlockPool pool = Make(2 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(void* const block, pool.Allocate(kMiB));
    blocks.push_back(block);
  }
  for (void* const block : blocks) pool.Free(block, kMiB);
  EXPECT_EQ(live_.size(), 2);
  RILL_ASSERT_OK_AND_ASSIGN(void* const large,
                            pool.Allocate(BlockPool::kMaxBytes + 1));
  pool.Free(large, BlockPool::kMaxBytes + 1);
  EXPECT_EQ(live_.size(), 2);
}

TEST_F(BlockPoolTest, GivesBackWhatIsUnusedBeforeItSaysThatNothingIsLeft) {
  BlockPool pool = Make(64 * kMiB);
  RILL_ASSERT_OK_AND_ASSIGN(void* const block, pool.Allocate(kMiB));
  pool.Free(block, kMiB);
  left_ = 0;
  EXPECT_THAT(pool.Allocate(2 * kMiB),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(live_.empty());
}

}  // namespace
}  // namespace rill
