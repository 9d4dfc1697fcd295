// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/slot.h"

#include "gtest/gtest.h"

namespace rill {
namespace {

TEST(LanesTest, SlotsOfALaneLieTogether) {
  const Lanes lanes = {.count = 3, .capacity = 4};
  EXPECT_EQ(lanes.num_slots(), 12);
  EXPECT_EQ(lanes.SlotOf(2, 1), 9);
  for (int64_t lane = 0; lane < 3; ++lane) {
    for (int64_t position = 0; position < 4; ++position) {
      const Slot slot = lanes.SlotOf(lane, position);
      EXPECT_EQ(lanes.LaneOf(slot), lane);
      EXPECT_EQ(lanes.PositionOf(slot), position);
    }
  }
}

TEST(DrawTest, WeighsOneUnlessASamplerSaysOtherwise) {
  EXPECT_EQ(Draw().weight, 1.0f);
}

}  // namespace
}  // namespace rill
