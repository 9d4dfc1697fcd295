// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lanes/lane_pool.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::envs_internal {
namespace {

using ::testing::Each;

class LanePoolTest : public testing::TestWithParam<int> {};

TEST_P(LanePoolTest, CallsEachOnceInEveryRound) {
  std::vector<int> calls(100);
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<LanePool> pool,
      LanePool::Create(GetParam(), [&](int64_t i) { ++calls[i]; }));
  for (int64_t count = 0; count <= 100; ++count) {
    for (const bool at_once : {false, true}) {
      std::fill(calls.begin(), calls.end(), 0);
      if (at_once) {
        pool->Run(count);
      } else {
        pool->Begin(count);
        pool->Finish();
      }
      ASSERT_EQ(std::count(calls.begin(), calls.begin() + count, 1), count);
      ASSERT_EQ(std::count(calls.begin() + count, calls.end(), 0), 100 - count);
    }
  }
}

TEST_P(LanePoolTest, CallsInAllThreadsAtOnce) {
  const int threads = GetParam();
  // Everybody waits in its call for all others.
  std::unique_ptr<absl::Barrier> barrier;
  RILL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LanePool> pool,
                            LanePool::Create(threads, [&](int64_t) {
                              absl::Barrier* const here = barrier.get();
                              if (here->Block()) barrier.reset();
                            }));
  for (int round = 0; round < 50; ++round) {
    barrier = std::make_unique<absl::Barrier>(threads);
    pool->Run(threads);
    EXPECT_EQ(barrier, nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, LanePoolTest, testing::Values(1, 2, 3, 8));

TEST(LanePoolBesideTheCallerTest, BeginsBeforeTheCallerTakesPart) {
  absl::Notification caller_waits;
  absl::Notification called;
  RILL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LanePool> pool,
                            LanePool::Create(2, [&](int64_t) {
                              caller_waits.WaitForNotification();
                              called.Notify();
                            }));
  pool->Begin(1);
  caller_waits.Notify();
  called.WaitForNotification();
  pool->Finish();
}

TEST(LanePoolBesideTheCallerTest, EndsInTheMiddleOfARound) {
  for (int round = 0; round < 50; ++round) {
    std::vector<int> calls(64);
    RILL_ASSERT_OK_AND_ASSIGN(
        std::unique_ptr<LanePool> pool,
        LanePool::Create(3, [&](int64_t i) { ++calls[i]; }));
    pool->Begin(64);
    pool.reset();
    EXPECT_THAT(calls, Each(testing::Le(1)));
  }
}

}  // namespace
}  // namespace rill::envs_internal
