// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized/row_priorities.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/slots/slot_places.h"

namespace rill::samplers_internal {
namespace {

void Turn(SlotRange slots, bool on, RowPriorities* rows) {
  rows->Update({&slots, 1}, {}, [on](uint32_t word, Slot, int64_t) {
    return on ? word | RowPriorities::kOn : word & ~RowPriorities::kOn;
  });
}

using ::testing::ElementsAre;
using ::testing::Optional;

std::vector<Slot> SlotsOn(const RowPriorities& rows) {
  std::vector<Slot> slots;
  rows.ForEachOn([&slots](Slot slot) { slots.push_back(slot); });
  return slots;
}

TEST(RowPrioritiesTest, KeepsPrioritiesOfRowsThatAreOff) {
  RowPriorities rows({.capacity = 100});
  EXPECT_EQ(rows.Get(7), 0.0f);
  EXPECT_FALSE(rows.IsOn(7));
  rows.Set(7, 3.5f);
  EXPECT_EQ(rows.Max(), std::nullopt);
  Turn({.first = 6, .count = 2}, true, &rows);
  EXPECT_EQ(rows.Get(7), 3.5f);
  EXPECT_TRUE(rows.IsOn(7));
  EXPECT_THAT(rows.Max(), Optional(3.5f));
  EXPECT_THAT(rows.Min(), Optional(0.0f));
  EXPECT_THAT(SlotsOn(rows), ElementsAre(6, 7));
  Turn({.first = 7, .count = 1}, false, &rows);
  EXPECT_EQ(rows.Get(7), 3.5f);
  EXPECT_THAT(rows.Max(), Optional(0.0f));
}

TEST(RowPrioritiesTest, MinusZeroIsZero) {
  RowPriorities rows({.capacity = 3});
  rows.Set(1, -0.0f);
  EXPECT_FALSE(rows.IsOn(1));
  EXPECT_EQ(rows.Max(), std::nullopt);
}

TEST(RowPrioritiesTest, ZeroMayNotCountAsTheSmallest) {
  RowPriorities rows({.capacity = 40}, /*zero_counts=*/false);
  Turn({.first = 0, .count = 40}, true, &rows);
  EXPECT_EQ(rows.Min(), std::nullopt);
  EXPECT_THAT(rows.Max(), Optional(0.0f));
  EXPECT_THAT(SlotsOn(rows), ::testing::SizeIs(40));
  rows.Set(3, std::numeric_limits<float>::denorm_min());
  EXPECT_THAT(rows.Min(), Optional(std::numeric_limits<float>::denorm_min()));
}

TEST(RowPrioritiesTest, NoSlots) {
  RowPriorities rows;
  EXPECT_EQ(rows.Min(), std::nullopt);
  EXPECT_THAT(SlotsOn(rows), ElementsAre());
}

// Lanes that lie step after step: a step of some of them, against plain arrays.
TEST(RowPrioritiesTest, StepsOfManyLanesAgreeWithPlainArrays) {
  const Lanes lanes = {.count = SlotPlaces::kManyLanes + 5, .capacity = 3};
  const Rng rng(/*seed=*/5);
  RowPriorities rows(lanes);
  std::vector<uint32_t> words(lanes.num_slots());
  for (uint64_t step = 0; step < 100; ++step) {
    const int64_t position = rng.UniformInt(step, 0, lanes.capacity);
    const int64_t first = rng.UniformInt(step, 1, 1000);
    std::vector<SlotRange> ranges;
    for (int64_t lane = first; lane < lanes.count; ++lane) {
      ranges.push_back({lanes.SlotOf(lane, position), 1});
    }
    const bool on = rng.UniformInt(step, 2, 3) != 0;
    const auto priority = static_cast<float>(rng.UniformInt(step, 3, 50));
    rows.Update(ranges, {}, [&](uint32_t word, Slot slot, int64_t i) {
      EXPECT_EQ(word, words[slot]);
      EXPECT_EQ(slot, ranges[i].first);
      return words[slot] = RowPriorities::WordOf(priority) |
                           (on ? RowPriorities::kOn : 0);
    });
    const Slot slot = rng.UniformInt(step, 4, lanes.num_slots());
    rows.Set(slot, 70.0f);
    words[slot] =
        RowPriorities::WordOf(70.0f) | (words[slot] & RowPriorities::kOn);
    uint32_t max = 0;
    uint32_t min = ~uint32_t{0};
    for (const uint32_t word : words) {
      if (word < RowPriorities::kOn) continue;
      max = std::max(max, word);
      min = std::min(min, word);
    }
    if (max == 0) {
      ASSERT_EQ(rows.Max(), std::nullopt);
      continue;
    }
    ASSERT_EQ(rows.Max(), RowPriorities::PriorityOf(max)) << step;
    ASSERT_EQ(rows.Min(), RowPriorities::PriorityOf(min)) << step;
  }
  std::vector<Slot> want;
  for (Slot slot = 0; slot < lanes.num_slots(); ++slot) {
    ASSERT_EQ(rows.IsOn(slot), words[slot] >= RowPriorities::kOn);
    if (rows.IsOn(slot)) want.push_back(slot);
  }
  std::vector<Slot> got = SlotsOn(rows);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, want);
  rows.TurnAllOff();
  EXPECT_EQ(rows.Max(), std::nullopt);
  EXPECT_THAT(SlotsOn(rows), ElementsAre());
}

// Against plain arrays, over sizes on both sides of where levels begin.
TEST(RowPrioritiesTest, AgreesWithPlainArraysOverRandomChanges) {
  const Rng rng(/*seed=*/3);
  for (const int64_t size : {1, 15, 16, 17, 127, 128, 129, 1023, 1025, 9000}) {
    for (const bool zero_counts : {false, true}) {
      RowPriorities rows({.capacity = size}, zero_counts);
      std::vector<float> priorities(size);
      std::vector<bool> on(size);
      for (uint64_t step = 0; step < 600; ++step) {
        const Slot slot = rng.UniformInt(step, 0, size);
        const int64_t kind = rng.UniformInt(step, 1, 8);
        if (kind < 6) {  // Few different values, so that extremes are shared.
          const auto value = static_cast<float>(rng.UniformInt(step, 2, 9));
          rows.Set(slot, value);
          priorities[slot] = value;
        } else {
          const int64_t most = std::min<int64_t>(size - slot, 300);
          const int64_t count = rng.UniformInt(step, 3, most + 1);
          Turn({.first = slot, .count = count}, kind == 7, &rows);
          std::fill_n(on.begin() + slot, count, kind == 7);
        }
        std::optional<float> min, max;
        for (Slot i = 0; i < size; ++i) {
          if (!on[i]) continue;
          max = std::max(max.value_or(0), priorities[i]);
          if (priorities[i] == 0 && !zero_counts) continue;
          min = std::min(min.value_or(1e9f), priorities[i]);
        }
        ASSERT_EQ(rows.Min(), min) << size << ", step " << step;
        ASSERT_EQ(rows.Max(), max) << size << ", step " << step;
      }
      std::vector<Slot> want;
      for (Slot i = 0; i < size; ++i) {
        ASSERT_EQ(rows.Get(i), priorities[i]);
        if (on[i]) want.push_back(i);
      }
      ASSERT_EQ(SlotsOn(rows), want);
    }
  }
}

}  // namespace
}  // namespace rill::samplers_internal
