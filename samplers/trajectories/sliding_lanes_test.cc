// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/sliding_lanes.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace rill::samplers_internal {
namespace {

TEST(SlidingLanesTest, NeighboursMoveTogetherAndOthersDoNot) {
  SlidingLanes lanes;
  lanes.Reset(130);
  for (const int64_t lane : {0, 5, 63, 64, 129}) {
    ASSERT_TRUE(lanes.Insert(lane, 7));
  }
  EXPECT_EQ(lanes.Neighbours(1),
            uint64_t{1} | uint64_t{1} << 5 | uint64_t{1} << 63);
  lanes.Slide(63, 2);
  for (const int64_t lane : {0, 5, 63}) EXPECT_EQ(lanes.end(lane), 9) << lane;
  for (const int64_t lane : {64, 129}) EXPECT_EQ(lanes.end(lane), 7) << lane;
  EXPECT_FALSE(lanes.Has(1));
  EXPECT_TRUE(lanes.Has(129));
}

TEST(SlidingLanesTest, NeighbourThatEndsElsewhereStaysOutUntilNoneIsLeft) {
  SlidingLanes lanes;
  lanes.Reset(64);
  ASSERT_TRUE(lanes.Insert(3, 7));
  EXPECT_FALSE(lanes.Insert(4, 8));
  EXPECT_FALSE(lanes.Has(4));
  EXPECT_EQ(lanes.end(3), 7);
  lanes.Erase(3);
  EXPECT_FALSE(lanes.Has(3));
  EXPECT_TRUE(lanes.Insert(4, 8));
  EXPECT_EQ(lanes.end(4), 8);
}

}  // namespace
}  // namespace rill::samplers_internal
