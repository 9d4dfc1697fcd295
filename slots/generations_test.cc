// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/generations.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/slots/slot_places.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/peak_memory.h"

namespace rill {
namespace {

constexpr auto kNothing = [] {};

TEST(GenerationsTest, CountsTheRowsOfASlotFromZero) {
  Generations generations;
  StorageModel model({.count = 1, .capacity = 3}, StorageModel::kNothing);
  model.AddObserver(&generations);
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
  StorageModel model({.count = 1, .capacity = 2}, StorageModel::kNothing);
  model.AddObserver(&generations);
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
  StorageModel model({.count = 1, .capacity = 2}, StorageModel::kNothing);
  model.AddObserver(&generations);
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
  StorageModel model({.count = 1, .capacity = 2}, StorageModel::kNothing);
  model.AddObserver(&generations);
  for (const Slot slot : {-1, 2, 1000}) {
    EXPECT_FALSE(generations.IsCurrent({.slot = slot, .generation = 0}));
  }
  // Nor those without a row, whatever the draw says.
  EXPECT_FALSE(generations.IsCurrent({.slot = 0, .generation = -1}));
}

TEST(GenerationsTest, RestoredValuesGoOn) {
  Generations generations;
  StorageModel model({.count = 1, .capacity = 2}, StorageModel::kNothing);
  model.AddObserver(&generations);
  generations.Restore({.first = 0, .count = 1}, 7);
  EXPECT_EQ(generations.Get(0), 7);
  EXPECT_EQ(generations.Get(1), -1);
  EXPECT_TRUE(generations.IsCurrent({.slot = 0, .generation = 7}));
}

TEST(GenerationsTest, LazyStorageAttachesAgainWithItsLanes) {
  Generations generations;
  generations.OnAttach(Lanes(), {});
  EXPECT_EQ(generations.num_slots(), 0);
  generations.OnAttach({.count = 1, .capacity = 3}, {});
  ASSERT_EQ(generations.num_slots(), 3);
  for (Slot slot = 0; slot < 3; ++slot) EXPECT_EQ(generations.Get(slot), -1);
}

// A storage whose write failed half-way attaches its observers again.
TEST(GenerationsTest, AttachingAgainMakesOldDrawsStale) {
  Generations generations;
  StorageModel model({.count = 1, .capacity = 2}, StorageModel::kNothing);
  model.AddObserver(&generations);
  model.Append({1}, kNothing);
  const Draw draw = {.slot = 0, .generation = generations.Get(0)};
  model.Attach(&generations);
  EXPECT_FALSE(generations.IsCurrent(draw));
  EXPECT_EQ(generations.Get(0), 1);
  EXPECT_EQ(generations.Get(1), -1);
}

TEST(GenerationsTest, SlotNamedTwiceInPlaceCountsOnce) {
  Generations generations;
  StorageModel model({.count = 1, .capacity = 3}, StorageModel::kNothing);
  model.AddObserver(&generations);
  model.Append({3}, kNothing);
  model.WriteInPlace({1, 2, 1},
                     [&] { EXPECT_EQ(generations.Get(1), ~int64_t{1}); });
  EXPECT_EQ(generations.Get(1), 1);
  EXPECT_EQ(generations.Get(2), 1);
}

TEST(GenerationsTest, WriteThatRetiredNothingCountsNothing) {
  Generations generations;
  StorageModel model({.count = 1, .capacity = 3}, StorageModel::kNothing);
  model.AddObserver(&generations);
  model.Append({2}, kNothing);
  WriteEvent event;
  const SlotRange written[] = {{.first = 0, .count = 1}};
  event.written = written;
  generations.OnWrite(event);
  EXPECT_EQ(generations.Get(0), 0);
}

TEST(GenerationsTest, WritesOfSeveralWritersMayOverlap) {
  Generations generations;
  StorageModel model({.count = 2, .capacity = 4}, StorageModel::kNothing);
  model.AddObserver(&generations);
  model.Append({4, 4}, kNothing);
  model.BeginAppend({2, 0});
  model.BeginAppend({1, 3});
  EXPECT_LT(generations.Get(0), 0);
  EXPECT_LT(generations.Get(2), 0);
  EXPECT_EQ(generations.Get(3), 0);
  model.WriteInPlace({3}, kNothing);
  model.FinishAppend();
  EXPECT_EQ(generations.Get(0), 1);
  EXPECT_EQ(generations.Get(3), 1);
  EXPECT_LT(generations.Get(2), 0);
  model.FinishAppend();
  EXPECT_EQ(generations.Get(2), 1);
}

// Several appends may be open, other writes come between their halves.
TEST(GenerationsTest, AgreesWithTheModel) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Rng rng(seed);
    Generations generations;
    StorageModel model({.count = 3, .capacity = 5}, StorageModel::kNothing);
    model.AddObserver(&generations);
    std::vector<bool> live(15);
    for (uint64_t step = 0; step < 1000; ++step) {
      uint32_t draw = 0;
      const auto pick = [&](int64_t bound) {
        return rng.UniformInt(step, draw++, bound);
      };
      const int64_t operation = pick(20);
      if (operation == 0) {
        while (model.appends_in_flight() > 0) model.FinishAppend();
        model.Clear();
      } else if (operation < 6 && !model.Live().empty()) {
        const std::vector<Slot> slots = model.Live();
        model.WriteInPlace(
            {slots[pick(slots.size())], slots[pick(slots.size())]}, kNothing,
            pick(3) == 0 ? StorageModel::InPlace::kPatch
                         : StorageModel::InPlace::kPart);
      } else if (operation < 12 && model.appends_in_flight() > 0) {
        model.FinishAppend();
      } else if (operation < 16 || model.appends_in_flight() > 0) {
        std::vector<int64_t> counts;
        for (int64_t lane = 0; lane < 3; ++lane) {
          counts.push_back(pick(model.Room(lane) + 1));
        }
        model.BeginAppend(counts);
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

// As many lanes as lie step after step, some of which fall out of step.
TEST(GenerationsTest, ManyLanesCountAsFewDo) {
  const Lanes lanes = {.count = SlotPlaces::kManyLanes + 100, .capacity = 3};
  const Rng rng(3);
  Generations generations;
  StorageModel model(lanes, StorageModel::kNothing);
  model.AddObserver(&generations);
  EXPECT_EQ(generations.NextWritten(0), lanes.num_slots());
  std::vector<Slot> all(lanes.num_slots());
  std::iota(all.begin(), all.end(), 0);
  std::vector<int64_t> many(all.size());
  for (uint64_t step = 0; step < 30; ++step) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(step, draw++, bound);
    };
    const int64_t kind = pick(6);
    std::vector<int64_t> counts(lanes.count, kind == 0 ? 2 : 1);
    if (kind == 1) std::fill_n(counts.begin() + 250 * pick(3), pick(500), 0);
    if (kind == 2) model.Clear();
    model.Append(counts, [&] {
      for (const Slot slot : {Slot{0}, Slot{1}, lanes.num_slots() - 1}) {
        EXPECT_EQ(generations.Get(slot) >= 0, model.IsLive(slot));
      }
    });
    if (kind == 3) model.WriteInPlace({model.Live()[pick(900)]}, kNothing);
    generations.GetMany(all, many.data());
    for (const Slot slot : all) {
      const int64_t latest = model.writes(slot) - 1;
      ASSERT_EQ(generations.Get(slot),
                model.IsLive(slot) ? latest : ~(latest + 1))
          << slot << ", step " << step;
      ASSERT_EQ(many[slot], generations.Get(slot));
      if (latest >= 0) {
        ASSERT_EQ(generations.NextWritten(slot), slot);
      }
    }
  }
  Generations restored;
  restored.OnAttach(lanes, {});
  for (const Slot slot : all) {
    restored.Restore({.first = slot, .count = 1}, many[slot]);
  }
  for (const Slot slot : all) ASSERT_EQ(restored.Get(slot), many[slot]);
}

TEST(GenerationsTest, StepsOfManyLanesTakeNoMemoryARow) {
  const Lanes lanes = {.count = SlotPlaces::kManyLanes, .capacity = 4096};
  const int64_t before = PeakMemoryBytes();
  Generations generations;
  generations.OnAttach(lanes, {});
  std::vector<SlotRange> ranges(lanes.count);
  for (int64_t step = 0; step < 6000; ++step) {
    for (int64_t lane = 0; lane < lanes.count; ++lane) {
      ranges[lane] = {lanes.SlotOf(lane, step % lanes.capacity), 1};
    }
    WriteEvent event;
    event.written = ranges;
    if (step >= lanes.capacity) event.retired = ranges;
    generations.OnRetire(event);
    generations.OnWrite(event);
  }
  EXPECT_EQ(generations.Get(0), 1);
  EXPECT_EQ(generations.Get(lanes.num_slots() - 1), 0);
  EXPECT_LT(PeakMemoryBytes() - before, lanes.num_slots() * 8 / 4);
}

// Laps of a large ring, some rows at a time: what lies behind the cursor has
// one count, and what lies before it another.
TEST(GenerationsTest, ARingTakesNoMemoryARow) {
  constexpr int64_t kSlots = int64_t{1} << 24;
  constexpr int64_t kRows = 1000;
  const Lanes lanes = {.count = 1, .capacity = kSlots};
  const int64_t before = PeakMemoryBytes();
  Generations generations;
  generations.OnAttach(lanes, {});
  int64_t written = 0;
  for (; written < 2 * kSlots + kSlots / 2; written += kRows) {
    const int64_t first = written % kSlots;
    const SlotRange ranges[2] = {
        {.first = first, .count = std::min(kRows, kSlots - first)},
        {.first = 0, .count = std::max<int64_t>(first + kRows - kSlots, 0)}};
    WriteEvent event;
    event.written = absl::MakeConstSpan(ranges, ranges[1].count > 0 ? 2 : 1);
    if (written + kRows > kSlots) event.retired = event.written;
    generations.OnRetire(event);
    generations.OnWrite(event);
  }
  EXPECT_EQ(generations.Get(0), 2);
  EXPECT_EQ(generations.Get(written % kSlots - 1), 2);
  EXPECT_EQ(generations.Get(written % kSlots), 1);
  EXPECT_EQ(generations.Get(kSlots - 1), 1);
  EXPECT_LT(PeakMemoryBytes() - before, kSlots * 8 / 4);
}

}  // namespace
}  // namespace rill
