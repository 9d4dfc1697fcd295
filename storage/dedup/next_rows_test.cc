// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/dedup/next_rows.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {
namespace {

std::set<Slot> SlotsOf(const std::vector<SlotRange>& ranges) {
  std::set<Slot> slots;
  for (const SlotRange& range : ranges) {
    for (int64_t i = 0; i < range.count; ++i) slots.insert(range.first + i);
  }
  return slots;
}

TEST(AddPredecessorsTest, IsEverySlotAndTheOneBeforeInItsRing) {
  const Rng rng(5);
  for (uint64_t round = 0; round < 2000; ++round) {
    uint32_t draw = 0;
    const auto below = [&](int64_t n) {
      return rng.UniformInt(round, draw++, n);
    };
    const Lanes lanes = {.count = 1 + below(4), .capacity = 1 + below(5)};
    std::vector<SlotRange> ranges;
    for (Slot at = below(3); at < lanes.num_slots();) {
      const int64_t count = 1 + below(lanes.num_slots() - at);
      ranges.push_back({at, count});
      at += count + 1 + below(3);
    }
    std::set<Slot> want = SlotsOf(ranges);
    for (const Slot slot : SlotsOf(ranges)) {
      const int64_t position = lanes.PositionOf(slot);
      want.insert(
          lanes.SlotOf(lanes.LaneOf(slot),
                       (position + lanes.capacity - 1) % lanes.capacity));
    }
    const size_t given = ranges.size();
    AddPredecessors(lanes, &ranges);
    EXPECT_EQ(SlotsOf(ranges), want);
    EXPECT_LE(ranges.size(), given * kRangesWithPredecessors);
    for (size_t i = 1; i < ranges.size(); ++i) {
      EXPECT_GT(ranges[i].first, ranges[i - 1].first + ranges[i - 1].count);
    }
  }
}

}  // namespace
}  // namespace rill::storage_internal
