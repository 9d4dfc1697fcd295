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

namespace rill::samplers_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

std::vector<Slot> SlotsOn(const RowPriorities& rows) {
  std::vector<Slot> slots;
  rows.ForEachOn([&slots](Slot slot) { slots.push_back(slot); });
  return slots;
}

TEST(RowPrioritiesTest, KeepsPrioritiesOfRowsThatAreOff) {
  RowPriorities rows(100);
  EXPECT_EQ(rows.Get(7), 0.0f);
  EXPECT_FALSE(rows.IsOn(7));
  rows.Set(7, 3.5f);
  EXPECT_EQ(rows.Max(), std::nullopt);
  rows.Turn({.first = 6, .count = 2}, true);
  EXPECT_EQ(rows.Get(7), 3.5f);
  EXPECT_TRUE(rows.IsOn(7));
  EXPECT_THAT(rows.Max(), Optional(3.5f));
  EXPECT_THAT(rows.Min(), Optional(0.0f));
  EXPECT_THAT(SlotsOn(rows), ElementsAre(6, 7));
  rows.Turn({.first = 7, .count = 1}, false);
  EXPECT_EQ(rows.Get(7), 3.5f);
  EXPECT_THAT(rows.Max(), Optional(0.0f));
}

TEST(RowPrioritiesTest, MinusZeroIsZero) {
  RowPriorities rows(3);
  rows.Set(1, -0.0f);
  EXPECT_FALSE(rows.IsOn(1));
  EXPECT_EQ(rows.Max(), std::nullopt);
}

TEST(RowPrioritiesTest, ZeroMayNotCountAsTheSmallest) {
  RowPriorities rows(40, /*zero_counts=*/false);
  rows.Turn({.first = 0, .count = 40}, true);
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

// Against plain arrays, over sizes on both sides of where levels begin.
TEST(RowPrioritiesTest, AgreesWithPlainArraysOverRandomChanges) {
  const Rng rng(/*seed=*/3);
  for (const int64_t size : {1, 15, 16, 17, 127, 128, 129, 1023, 1025, 9000}) {
    for (const bool zero_counts : {false, true}) {
      RowPriorities rows(size, zero_counts);
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
          rows.Turn({.first = slot, .count = count}, kind == 7);
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
