// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/ring/lane_rings.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

std::vector<LaneBlock> BlocksOf(const Lanes& lanes,
                                const std::vector<SlotRange>& ranges) {
  std::vector<LaneBlock> all;
  LaneBlocks blocks(lanes, ranges);
  for (LaneBlock block; blocks.Next(&block);) all.push_back(block);
  return all;
}

TEST(LaneRingsTest, WritesGoOnWhereTheLastOneEnded) {
  LaneRings rings({.count = 1, .capacity = 5});
  AppendPlan plan;
  rings.PlanAppend({0, 1, 3}, {}, &plan);
  EXPECT_THAT(plan.written, ElementsAre(SlotRange{0, 3}));
  EXPECT_THAT(plan.retired, IsEmpty());
  rings.Append({0, 1, 3});

  rings.PlanAppend({0, 1, 4}, {}, &plan);
  EXPECT_THAT(plan.written, ElementsAre(SlotRange{3, 2}, SlotRange{0, 2}));
  EXPECT_THAT(plan.retired, ElementsAre(SlotRange{0, 2}));
  rings.Append({0, 1, 4});
  EXPECT_EQ(rings.size(), 5);
  EXPECT_EQ(rings.cursors()[0].written, 7);
}

TEST(LaneRingsTest, LongWriteKeepsNewestStepsAndCountsAll) {
  LaneRings rings({.count = 2, .capacity = 3});
  rings.Append({1, 1, 2});
  AppendPlan plan;
  rings.PlanAppend({1, 1, 8}, {}, &plan);
  EXPECT_EQ(plan.kept, 3);
  EXPECT_EQ(plan.dropped, 5);
  // Steps 7, 8 and 9 of the lane.
  EXPECT_THAT(plan.written, ElementsAre(SlotRange{4, 2}, SlotRange{3, 1}));
  EXPECT_THAT(plan.retired, ElementsAre(SlotRange{3, 2}));
  rings.Append({1, 1, 8});
  EXPECT_EQ(rings.cursors()[1].written, 10);
  EXPECT_EQ(rings.size(), 3);
}

TEST(LaneRingsTest, LanesInStepArePlannedAsEachByItself) {
  const Lanes lanes = {.count = 2000, .capacity = 5};
  LaneRings rings(lanes);
  for (int64_t write = 0; write < 40; ++write) {
    const LaneSteps append = {write % 4 == 1 ? 500 : 0,
                              write % 4 == 1 ? 800 : lanes.count,
                              write % 9 == 8 ? 7 : 1 + write % 2};
    AppendPlan plan;
    rings.PlanAppend(append, {}, &plan);
    std::vector<SlotRange> written, retired;
    for (int64_t lane = append.first; lane < append.end(); ++lane) {
      AppendPlan one;
      rings.PlanAppend({lane, 1, append.steps}, {}, &one);
      written.insert(written.end(), one.written.begin(), one.written.end());
      retired.insert(retired.end(), one.retired.begin(), one.retired.end());
    }
    ASSERT_EQ(plan.written, written) << write;
    ASSERT_EQ(plan.retired, retired) << write;
    ASSERT_EQ(plan.written_blocks, BlocksOf(lanes, written)) << write;
    ASSERT_EQ(plan.retired_blocks, BlocksOf(lanes, retired)) << write;
    rings.Append(append);
  }
}

TEST(LaneRingsTest, CursorsWorkPastTwoToThe32) {
  LaneRings rings({.count = 1, .capacity = 7});
  const std::vector<Cursor> cursors = {{.written = int64_t{1} << 40}};
  rings.Restore(cursors);
  AppendPlan plan;
  rings.PlanAppend({0, 1, 1}, {}, &plan);
  EXPECT_THAT(plan.written, ElementsAre(SlotRange{(int64_t{1} << 40) % 7, 1}));
  EXPECT_EQ(rings.size(), 7);
}

TEST(LaneRingsTest, ErrorsNameTheLiveSlots) {
  LaneRings rings({.count = 2, .capacity = 4});
  EXPECT_THAT(rings.CheckLive("X", std::vector<Slot>{0}),
              IsOutOfRange("no row"));
  rings.Append({1, 1, 2});
  EXPECT_THAT(rings.CheckLive("X", std::vector<Slot>{4, 6}),
              IsOutOfRange("got 6 of lane 1, want a live one in [4, 6)"));
  EXPECT_THAT(rings.CheckLive("X", std::vector<Slot>{-1}),
              IsOutOfRange("[0, 8)"));
  rings.Append({0, 1, 4});
  EXPECT_THAT(rings.CheckLive("X", SlotRange{2, 3}), IsOutOfRange("one lane"));
  EXPECT_THAT(rings.CheckLive("X", SlotRange{4, 3}), IsOutOfRange("got 6"));
  EXPECT_THAT(rings.CheckLive("X", SlotRange{4, INT64_MAX}), IsOutOfRange());
  RILL_EXPECT_OK(rings.CheckLive("X", SlotRange{4, 2}));
}

TEST(LaneRingsTest, ErrorsNameTheLiveSlotsAroundAGap) {
  LaneRings rings({.count = 1, .capacity = 6});
  const std::vector<Cursor> cursors = {{.written = 10}};
  rings.Restore(cursors, std::vector<int64_t>{7});  // Steps 7, 8, 9.
  EXPECT_EQ(rings.size(), 3);
  EXPECT_THAT(rings.CheckLive("X", std::vector<Slot>{1, 4}),
              IsOutOfRange("got 4 of lane 0, want a live one in [1, 4)"));
  rings.Append({0, 1, 2});  // Steps 7 to 11, slots 1 to 5.
  EXPECT_THAT(rings.CheckLive("X", std::vector<Slot>{5, 0}),
              IsOutOfRange("[1, 6)"));
  rings.Append({0, 1, 1});
  RILL_EXPECT_OK(rings.CheckLive("X", std::vector<Slot>{0, 1, 2, 3, 4, 5}));
}

TEST(LaneRingsTest, ErrorsNameBothPartsOfAWindowThatWraps) {
  LaneRings rings({.count = 1, .capacity = 6});
  const std::vector<Cursor> cursors = {{.written = 12}};
  rings.Restore(cursors, std::vector<int64_t>{9});  // Up to the last slot.
  EXPECT_THAT(rings.CheckLive("X", std::vector<Slot>{1}),
              StatusIs(absl::StatusCode::kOutOfRange, EndsWith("in [3, 6)")));
  rings.Append({0, 1, 1});
  EXPECT_THAT(
      rings.CheckLive("X", std::vector<Slot>{1}),
      StatusIs(absl::StatusCode::kOutOfRange, EndsWith("in [3, 6) or [0, 1)")));
}

TEST(LaneRingsTest, ARangeWithAGapBetweenLiveEndsIsRefused) {
  LaneRings rings({.count = 2, .capacity = 10});
  const std::vector<Cursor> cursors = {{.written = 10}, {.written = 13}};
  // Lane 1 has its steps 8 to 12 left, at positions 8, 9, 0, 1 and 2.
  rings.Restore(cursors, std::vector<int64_t>{0, 8});
  EXPECT_THAT(rings.CheckLive("X", SlotRange{12, 7}), IsOutOfRange("got 13"));
  RILL_EXPECT_OK(rings.CheckLive("X", SlotRange{10, 3}));
  RILL_EXPECT_OK(rings.CheckLive("X", SlotRange{18, 2}));
  RILL_EXPECT_OK(rings.CheckLive("X", SlotRange{0, 10}));
}

TEST(LaneRingsTest, JoinedSlotsNeverLeaveTheirLane) {
  std::vector<SlotRange> ranges;
  JoinSlots({.count = 2, .capacity = 3}, std::vector<Slot>{1, 2, 3, 4, 0},
            &ranges);
  EXPECT_THAT(ranges,
              ElementsAre(SlotRange{1, 2}, SlotRange{3, 2}, SlotRange{0, 1}));
}

// A deque a lane of (position) knows the same.
TEST(LaneRingsTest, AgreesWithQueuesOverRandomAppends) {
  const Rng rng(17);
  uint64_t draw = 0;
  const auto below = [&](int64_t n) { return rng.UniformInt(draw++, 0, n); };
  for (int round = 0; round < 200; ++round) {
    const Lanes lanes = {.count = 1 + below(4), .capacity = 1 + below(6)};
    LaneRings rings(lanes);
    std::vector<std::deque<Slot>> want(lanes.count);
    std::vector<int64_t> written(lanes.count, 0);
    AppendPlan plan;
    for (int step = 0; step < 50; ++step) {
      const int64_t first = below(lanes.count);
      const int64_t count = 1 + below(lanes.count - first);
      const int64_t steps = below(2 * lanes.capacity + 2);
      rings.PlanAppend({first, count, steps}, {}, &plan);
      rings.Append({first, count, steps});
      for (int64_t lane = first; lane < first + count; ++lane) {
        for (int64_t i = 0; i < steps; ++i) {
          if (static_cast<int64_t>(want[lane].size()) == lanes.capacity) {
            want[lane].pop_front();
          }
          want[lane].push_back(
              lanes.SlotOf(lane, written[lane]++ % lanes.capacity));
        }
      }
      if (below(4) == 0) {  // A writer died: the oldest of some lanes are gone.
        std::vector<int64_t> first_live;
        for (int64_t lane = 0; lane < lanes.count; ++lane) {
          std::deque<Slot>& live = want[lane];
          const int64_t gone = below(static_cast<int64_t>(live.size()) + 1);
          live.erase(live.begin(), live.begin() + gone);
          first_live.push_back(written[lane] -
                               static_cast<int64_t>(live.size()));
        }
        const std::vector<Cursor> cursors = rings.cursors();
        rings.Restore(cursors, first_live);
      }
      std::vector<Slot> all;
      for (const auto& lane : want)
        all.insert(all.end(), lane.begin(), lane.end());
      std::vector<SlotRange> ranges;
      std::vector<Slot> got;
      rings.LiveRanges(&ranges);
      ExpandRanges(ranges, &got);
      ASSERT_EQ(got, all);
      ASSERT_EQ(rings.size(), static_cast<int64_t>(all.size()));
      for (Slot slot = 0; slot < lanes.num_slots(); ++slot) {
        const bool is_live =
            std::find(all.begin(), all.end(), slot) != all.end();
        ASSERT_EQ(rings.IsLive(slot), is_live) << slot;
      }
    }
  }
}

// A plan made while appends are in flight equals the append after they are
// done.
TEST(LaneRingsTest, PlansAfterAppendsInFlight) {
  const Rng rng(18);
  uint64_t draw = 0;
  const auto below = [&](int64_t n) { return rng.UniformInt(draw++, 0, n); };
  for (int round = 0; round < 2000; ++round) {
    const Lanes lanes = {.count = 1 + below(4), .capacity = 1 + below(9)};
    const auto random_append = [&] {
      const int64_t first = below(lanes.count);
      return LaneSteps{first, 1 + below(lanes.count - first),
                       1 + below(lanes.capacity + 3)};
    };
    LaneRings rings(lanes);
    for (int64_t i = below(4); i > 0; --i) rings.Append(random_append());
    LaneRings later = rings;
    std::vector<LaneSteps> in_flight;
    for (int64_t i = below(4); i > 0; --i) {
      in_flight.push_back(random_append());
      later.Append(in_flight.back());
    }
    const LaneSteps append = random_append();
    AppendPlan now;
    AppendPlan want;
    rings.PlanAppend(append, in_flight, &now);
    later.PlanAppend(append, {}, &want);
    ASSERT_EQ(now.written, want.written);
    ASSERT_EQ(now.retired, want.retired);
    ASSERT_EQ(now.kept, want.kept);
    ASSERT_EQ(now.dropped, want.dropped);
  }
}

TEST(LaneRingsTest, CursorsNeverOverflow) {
  LaneRings rings({.count = 2, .capacity = 3});
  const std::vector<Cursor> cursors = {{5}, {kMaxWritten - 2}};
  rings.Restore(cursors);
  RILL_EXPECT_OK(rings.CheckAppend("Test", {0, 2, 2}));
  RILL_EXPECT_OK(rings.CheckAppend("Test", {0, 1, kMaxWritten - 5}));
  EXPECT_THAT(rings.CheckAppend("Test", {0, 2, 3}), IsFailedPrecondition());
  EXPECT_THAT(rings.CheckAppend("Test", {1, 1, INT64_MAX}),
              IsFailedPrecondition());
  EXPECT_THAT(rings.CheckAppend("Test", {1, 1, 2}, {{0, 2, 1}}),
              IsFailedPrecondition());
  AppendPlan plan;
  rings.PlanAppend({0, 1, kMaxWritten - 5}, {}, &plan);
  rings.Append({0, 1, kMaxWritten - 5});
  EXPECT_EQ(rings.cursors()[0].written, kMaxWritten);
  EXPECT_EQ(plan.kept, 3);
}

TEST(AllInRangeTest, LooksAtEverySlot) {
  for (size_t n = 0; n < 11; ++n) {
    for (size_t at = 0; at < n; ++at) {
      for (const Slot stray : {Slot{-1}, Slot{5}, INT64_MAX, INT64_MIN}) {
        std::vector<Slot> slots(n, 4);
        EXPECT_TRUE(AllInRange(slots, 5));
        slots[at] = stray;
        EXPECT_FALSE(AllInRange(slots, 5)) << n << " " << at << " " << stray;
      }
    }
  }
  EXPECT_TRUE(AllInRange({}, 0));
  EXPECT_FALSE(AllInRange({0}, 0));
}

}  // namespace
}  // namespace rill::storage_internal
