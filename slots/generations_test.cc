// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/generations.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/ring_model.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

using slots_internal::RingModel;
using ::testing::ElementsAreArray;
using ::testing::SizeIs;

constexpr auto kNothing = [] {};

TEST(GenerationsTest, CountsTheRowsOfASlotFromZero) {
  Generations generations;
  RingModel model({.count = 1, .capacity = 3}, &generations);
  EXPECT_EQ(generations.Get(0), -1);
  model.Append({3}, kNothing);
  EXPECT_EQ(generations.Get(0), 0);
  model.Append({1}, kNothing);
  EXPECT_EQ(generations.Get(0), 1);
  EXPECT_EQ(generations.Get(1), 0);
  model.WriteInPlace({1}, kNothing);
  EXPECT_EQ(generations.Get(1), 1);
}

TEST(GenerationsTest, DrawIsStaleWhenItsRowIsOverwritten) {
  Generations generations;
  RingModel model({.count = 1, .capacity = 2}, &generations);
  model.Append({2}, kNothing);
  const Draw draw = {.slot = 0, .generation = generations.Get(0)};
  EXPECT_TRUE(generations.IsCurrent(draw));
  // Already while the write is in flight.
  model.Append({1}, [&] { EXPECT_FALSE(generations.IsCurrent(draw)); });
  EXPECT_FALSE(generations.IsCurrent(draw));
  EXPECT_TRUE(generations.IsCurrent({.slot = 0, .generation = 1}));
}

TEST(GenerationsTest, ClearingMakesDrawsStaleForGood) {
  Generations generations;
  RingModel model({.count = 1, .capacity = 2}, &generations);
  model.Append({1}, kNothing);
  const Draw draw = {.slot = 0, .generation = generations.Get(0)};
  model.Clear();
  EXPECT_FALSE(generations.IsCurrent(draw));
  model.Append({1}, kNothing);
  EXPECT_FALSE(generations.IsCurrent(draw));
  EXPECT_EQ(generations.Get(0), 1);
  EXPECT_EQ(generations.Get(1), -1);
}

TEST(GenerationsTest, SlotsThatDoNotExistAreNeverCurrent) {
  Generations generations;
  EXPECT_FALSE(generations.IsCurrent({.slot = 0, .generation = 0}));
  RingModel model({.count = 1, .capacity = 2}, &generations);
  for (const Slot slot : {-1, 2, 1000}) {
    EXPECT_FALSE(generations.IsCurrent({.slot = slot, .generation = 0}));
  }
  // Nor those without a row, whatever the draw says.
  EXPECT_FALSE(generations.IsCurrent({.slot = 0, .generation = -1}));
}

TEST(GenerationsTest, RestoredValuesGoOn) {
  Generations generations;
  RingModel model({.count = 1, .capacity = 2}, &generations);
  generations.Restore(std::vector<int64_t>{7, -1});
  EXPECT_THAT(generations.values(), ElementsAreArray({7, -1}));
  EXPECT_TRUE(generations.IsCurrent({.slot = 0, .generation = 7}));
}

TEST(GenerationsTest, LazyStorageAttachesAgainWithItsLanes) {
  Generations generations;
  generations.OnAttach(Lanes(), {});
  EXPECT_THAT(generations.values(), SizeIs(0));
  generations.OnAttach({.count = 1, .capacity = 3}, {});
  EXPECT_THAT(generations.values(), ElementsAreArray({-1, -1, -1}));
}

// A storage whose write failed half-way attaches its observers again.
TEST(GenerationsTest, AttachingAgainMakesOldDrawsStale) {
  Generations generations;
  RingModel model({.count = 1, .capacity = 2}, &generations);
  model.Append({1}, kNothing);
  const Draw draw = {.slot = 0, .generation = generations.Get(0)};
  model.Attach(&generations);
  EXPECT_FALSE(generations.IsCurrent(draw));
  EXPECT_EQ(generations.Get(0), 1);
  EXPECT_EQ(generations.Get(1), -1);
}

TEST(GenerationsTest, AgreesWithTheModel) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Rng rng(seed);
    Generations generations;
    RingModel model({.count = 3, .capacity = 5}, &generations);
    std::vector<bool> live(15);
    for (uint64_t step = 0; step < 1000; ++step) {
      uint32_t draw = 0;
      const auto pick = [&](int64_t bound) {
        return rng.UniformInt(step, draw++, bound);
      };
      const int64_t operation = pick(20);
      if (operation == 0) {
        model.Clear();
      } else if (operation < 6 && !model.Live().empty()) {
        const std::vector<Slot> slots = model.Live();
        model.WriteInPlace({slots[pick(slots.size())]}, kNothing);
      } else {
        model.Append({pick(8), pick(8), pick(8)}, kNothing);
      }
      live.assign(15, false);
      for (const Slot slot : model.Live()) live[slot] = true;
      for (Slot slot = 0; slot < 15; ++slot) {
        const int64_t latest = model.writes(slot) - 1;
        ASSERT_EQ(generations.IsCurrent({.slot = slot, .generation = latest}),
                  live[slot]);
        ASSERT_FALSE(
            generations.IsCurrent({.slot = slot, .generation = latest - 1}));
        ASSERT_FALSE(
            generations.IsCurrent({.slot = slot, .generation = latest + 1}));
      }
    }
  }
}

}  // namespace
}  // namespace rill
