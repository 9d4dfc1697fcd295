// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/slot_places.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

TEST(SlotPlacesTest, FewLanesLieByTheirNumbers) {
  const SlotPlaces places({.count = 3, .capacity = 10});
  EXPECT_FALSE(places.go_by_step());
  for (Slot slot = 0; slot < 30; ++slot) {
    EXPECT_EQ(places.Of(slot), slot);
    EXPECT_EQ(places.SlotAt(slot), slot);
  }
}

TEST(SlotPlacesTest, ManyLanesLieStepAfterStep) {
  const Lanes lanes = {.count = SlotPlaces::kManyLanes, .capacity = 3};
  const SlotPlaces places(lanes);
  EXPECT_TRUE(places.go_by_step());
  for (int64_t place = 0; place < lanes.num_slots(); ++place) {
    const Slot slot = lanes.SlotOf(place % lanes.count, place / lanes.count);
    ASSERT_EQ(places.SlotAt(place), slot);
    ASSERT_EQ(places.Of(slot), place);
  }
}

TEST(SlotPlacesTest, StepOfAllLanesIsOneRun) {
  const Lanes lanes = {.count = SlotPlaces::kManyLanes, .capacity = 3};
  std::vector<SlotRange> ranges;
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    ranges.push_back({lanes.SlotOf(lane, 2), 1});
  }
  int64_t runs = 0;
  SlotPlaces(lanes).ForEachRun(ranges, {}, [&](const SlotPlaces::Run& run) {
    ++runs;
    EXPECT_EQ(run.place, 2 * lanes.count);
    EXPECT_EQ(run.count, lanes.count);
  });
  EXPECT_EQ(runs, 1);
}

TEST(SlotPlacesTest, RunsNameEachRowOnceWithItsPlaceAndNumber) {
  for (const int64_t count : {int64_t{5}, SlotPlaces::kManyLanes}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const Rng rng(seed);
      uint32_t draw = 0;
      const auto pick = [&](int64_t bound) {
        return rng.UniformInt(seed, draw++, bound);
      };
      const Lanes lanes = {.count = count, .capacity = 1 + pick(6)};
      const SlotPlaces places(lanes);
      std::vector<SlotRange> ranges;
      std::vector<Slot> rows;
      const int64_t steps = 1 + pick(lanes.capacity);
      int64_t position = pick(lanes.capacity);
      for (int64_t lane = 0; lane < count; ++lane) {
        if (pick(count) < 3) position = pick(lanes.capacity);
        for (int64_t i = 0; i < steps; ++i) {
          const Slot slot = lanes.SlotOf(lane, (position + i) % lanes.capacity);
          rows.push_back(slot);
          ranges.push_back({slot, 1});
          if (i == 0) continue;
          const SlotRange& before = ranges[ranges.size() - 2];
          if (slot != before.first + before.count) continue;
          ranges.pop_back();
          ++ranges.back().count;
        }
      }
      std::vector<bool> seen(rows.size());
      places.ForEachRun(ranges, {}, [&](const SlotPlaces::Run& run) {
        for (int64_t k = 0; k < run.count; ++k) {
          const int64_t row = run.row + k * run.row_step;
          const Slot slot = run.slot + k * run.slot_step;
          ASSERT_FALSE(seen[row]);
          seen[row] = true;
          ASSERT_EQ(rows[row], slot);
          ASSERT_EQ(places.Of(slot), run.place + k);
        }
      });
      for (const bool was_seen : seen) ASSERT_TRUE(was_seen);
    }
  }
}

}  // namespace
}  // namespace rill
