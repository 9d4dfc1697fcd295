// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/lane_blocks.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

std::vector<LaneBlock> All(const Lanes& lanes,
                           const std::vector<SlotRange>& ranges) {
  std::vector<LaneBlock> all;
  LaneBlocks blocks(lanes, ranges);
  for (LaneBlock block; blocks.Next(&block);) all.push_back(block);
  return all;
}

LaneBlock Block(int64_t lane, int64_t num_lanes, int64_t position,
                int64_t count) {
  return {.lane = lane,
          .num_lanes = num_lanes,
          .position = position,
          .count = count};
}

TEST(LaneBlocksTest, LanesInStepAreOneBlock) {
  EXPECT_THAT(All({.count = 3, .capacity = 10}, {{4, 2}, {14, 2}, {24, 2}}),
              ElementsAre(Block(0, 3, 4, 2)));
}

TEST(LaneBlocksTest, KnownBlocksAreTakenAsTheyAre) {
  const std::vector<SlotRange> ranges = {{4, 2}, {14, 2}};
  const std::vector<LaneBlock> known = {Block(0, 1, 4, 2), Block(1, 1, 4, 2)};
  LaneBlocks blocks({.count = 2, .capacity = 10}, ranges, known);
  std::vector<LaneBlock> all;
  for (LaneBlock block; blocks.Next(&block);) all.push_back(block);
  EXPECT_EQ(all, known);
}

TEST(LaneBlocksTest, LaneOutOfStepIsItsOwn) {
  EXPECT_THAT(
      All({.count = 4, .capacity = 10}, {{4, 2}, {14, 2}, {25, 2}, {34, 2}}),
      ElementsAre(Block(0, 2, 4, 2), Block(2, 1, 5, 2), Block(3, 1, 4, 2)));
}

TEST(LaneBlocksTest, LaneThatIsLeftOutEndsABlock) {
  EXPECT_THAT(All({.count = 3, .capacity = 10}, {{4, 2}, {24, 2}}),
              ElementsAre(Block(0, 1, 4, 2), Block(2, 1, 4, 2)));
}

TEST(LaneBlocksTest, RingsGoOnAtTheirBeginning) {
  EXPECT_THAT(
      All({.count = 2, .capacity = 10}, {{8, 2}, {0, 3}, {18, 2}, {10, 3}}),
      ElementsAre(Block(0, 2, 8, 5)));
  // Nor is a lane whose end and beginning were written two lanes.
  EXPECT_THAT(All({.count = 2, .capacity = 10}, {{8, 2}, {0, 3}, {18, 2}}),
              ElementsAre(Block(0, 1, 8, 5), Block(1, 1, 8, 2)));
}

TEST(LaneBlocksTest, WholeRingsAreOneRange) {
  EXPECT_THAT(All({.count = 2, .capacity = 3}, {{0, 3}, {3, 3}}),
              ElementsAre(Block(0, 2, 0, 3)));
}

TEST(LaneBlocksTest, RangesThatDoNotFollowOneAnotherAreTwoBlocks) {
  // The second one begins where the ring does, but the first one ends before
  // the ring's end; or it is the ring.
  EXPECT_THAT(All({.count = 1, .capacity = 10}, {{4, 2}, {0, 1}}),
              ElementsAre(Block(0, 1, 4, 2), Block(0, 1, 0, 1)));
  EXPECT_THAT(All({.count = 1, .capacity = 3}, {{0, 3}, {0, 3}}),
              ElementsAre(Block(0, 1, 0, 3), Block(0, 1, 0, 3)));
}

TEST(LaneBlocksTest, SlotsInNoOrderAreBlocksInThatOrder) {
  EXPECT_THAT(
      All({.count = 2, .capacity = 10}, {{13, 1}, {3, 1}, {3, 1}, {4, 1}}),
      ElementsAre(Block(1, 1, 3, 1), Block(0, 1, 3, 1), Block(0, 1, 3, 1),
                  Block(0, 1, 4, 1)));
}

// Lanes that now and then fall out of step, with rings that wrap around.
TEST(LaneBlocksTest, SayTheSameSlotsInTheSameOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Rng rng(seed);
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(seed, draw++, bound);
    };
    const Lanes lanes = {.count = 1 + pick(300), .capacity = 1 + pick(7)};
    std::vector<SlotRange> ranges;
    std::vector<Slot> want;
    int64_t position = pick(lanes.capacity);
    int64_t count = 1 + pick(lanes.capacity);
    for (int64_t lane = 0; lane < lanes.count; ++lane) {
      if (pick(80) == 0) continue;
      if (pick(80) == 0) position = pick(lanes.capacity);
      if (pick(80) == 0) count = 1 + pick(lanes.capacity);
      for (int64_t i = 0; i < count; ++i) {
        const Slot slot = lanes.SlotOf(lane, (position + i) % lanes.capacity);
        want.push_back(slot);
        if (i > 0 && slot == ranges.back().first + ranges.back().count) {
          ++ranges.back().count;
        } else {
          ranges.push_back({slot, 1});
        }
      }
    }
    std::vector<Slot> got;
    for (const LaneBlock& block : All(lanes, ranges)) {
      for (int64_t lane = block.lane; lane < block.end(); ++lane) {
        for (int64_t i = 0; i < block.count; ++i) {
          got.push_back(
              lanes.SlotOf(lane, (block.position + i) % lanes.capacity));
        }
      }
    }
    ASSERT_EQ(got, want) << seed;
  }
}

}  // namespace
}  // namespace rill
