// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/sharing/writes_in_flight.h"

#include <algorithm>
#include <list>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WritesInFlightTest, AppendsToOneLaneEndInTheirOrder) {
  WritesInFlight writes;
  WritesInFlight::Write first = {.append = {0, 2, 3}};
  WritesInFlight::Write other = {.append = {2, 1, 3}};
  WritesInFlight::Write second = {.append = {1, 2, 5}};
  WritesInFlight::Write in_place;
  writes.Begin(&first);
  writes.Begin(&other);
  writes.Begin(&second);
  writes.Begin(&in_place);
  EXPECT_THAT(writes.appends(),
              ElementsAre(first.append, other.append, second.append));
  EXPECT_FALSE(writes.HasEarlier(first));
  EXPECT_FALSE(writes.HasEarlier(other));
  EXPECT_FALSE(writes.HasEarlier(in_place));
  EXPECT_TRUE(writes.HasEarlier(second));
  writes.End(&first);
  EXPECT_TRUE(writes.HasEarlier(second));
  writes.End(&other);
  EXPECT_FALSE(writes.HasEarlier(second));
  EXPECT_THAT(writes.appends(), ElementsAre(second.append));
  writes.End(&in_place);
  writes.End(&second);
  EXPECT_TRUE(writes.empty());
  EXPECT_THAT(writes.appends(), IsEmpty());
}

TEST(WritesInFlightTest, WritesMeetWhereTheyHaveARowInCommon) {
  struct Case {
    std::vector<SlotRange> ranges;
    std::vector<Slot> slots;
    std::set<Slot> rows;
    WritesInFlight::Write write;
  };
  const Rng rng(4);
  uint64_t draw = 0;
  const auto below = [&](int64_t n) { return rng.UniformInt(draw++, 0, n); };
  WritesInFlight writes;
  std::list<Case> in_flight;
  int64_t met = 0;
  for (int round = 0; round < 5000; ++round) {
    Case& made = in_flight.emplace_back();
    if (below(2) == 0) {  // Runs that are apart, not sorted.
      for (Slot at = below(20); at < 40; at += 1 + below(20)) {
        const int64_t count = 1 + below(3);
        made.ranges.insert(
            made.ranges.begin() +
                below(static_cast<int64_t>(made.ranges.size()) + 1),
            {at, count});
        for (Slot slot = at; slot < at + count; ++slot) made.rows.insert(slot);
        at += count;
      }
      made.write.ranges = made.ranges;
    } else {  // Slots in any order, some twice.
      for (int64_t i = below(4); i >= 0; --i) made.slots.push_back(below(40));
      made.rows.insert(made.slots.begin(), made.slots.end());
      made.write.slots = made.slots;
    }
    bool meets = false;
    for (const Case& other : in_flight) {
      if (&other == &made) continue;
      for (const Slot row : made.rows) meets |= other.rows.contains(row);
    }
    ASSERT_EQ(writes.Meets(&made.write), meets);
    met += meets;
    if (meets) {
      in_flight.pop_back();
    } else {
      writes.Begin(&made.write);
    }
    if (!in_flight.empty() && (in_flight.size() > 4 || below(3) == 0)) {
      auto done = in_flight.begin();
      std::advance(done, below(static_cast<int64_t>(in_flight.size())));
      writes.End(&done->write);
      in_flight.erase(done);
    }
  }
  EXPECT_GT(met, 500);
  EXPECT_LT(met, 4500);
}

}  // namespace
}  // namespace rill::storage_internal
