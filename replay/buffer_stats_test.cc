// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/buffer_stats.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

TEST(BufferStatsTest, RatesAreOfTheTimeBetweenTwoLooks) {
  const BufferStats before = {.elapsed = absl::Seconds(2),
                              .rows_written = 10,
                              .items_sampled = 4,
                              .batches = 1};
  BufferStats now = before;
  now.elapsed = absl::Seconds(4);
  now.rows_written = 30;
  now.items_sampled = 5;
  now.batches = 1;
  const BufferStats::Rates rates = now.RatesSince(before);
  EXPECT_DOUBLE_EQ(rates.rows_written, 10);
  EXPECT_DOUBLE_EQ(rates.items_sampled, 0.5);
  EXPECT_DOUBLE_EQ(rates.batches, 0);
}

TEST(BufferStatsTest, RatesOfNoTimeAreZero) {
  BufferStats now;
  now.rows_written = 10;
  EXPECT_EQ(now.RatesSince(BufferStats()).rows_written, 0);
}

}  // namespace
}  // namespace rill
