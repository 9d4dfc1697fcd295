// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/slot_array.h"

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/testing/peak_memory.h"

namespace rill {
namespace {

TEST(SlotArrayTest, AgreesWithAMap) {
  constexpr int64_t kSlots = 100'000;
  const Rng rng(1);
  SlotArray<int64_t> array;
  for (uint64_t round = 0; round < 2; ++round) {
    array.Reset(kSlots);
    std::map<Slot, int64_t> want;
    for (uint32_t i = 1; i <= 300; ++i) {
      const Slot slot = rng.UniformInt(round, i, kSlots);
      array.At(slot) = i;
      want[slot] = i;
    }
    for (Slot slot = 0; slot < kSlots; ++slot) {
      ASSERT_EQ(array.Get(slot), want.contains(slot) ? want[slot] : 0);
    }
  }
}

TEST(SlotArrayTest, ManyAtOnceAreThoseOneByOne) {
  constexpr int64_t kSlots = 30'000;
  const Rng rng(/*seed=*/4);
  SlotArray<int64_t> array;
  array.Reset(kSlots);
  for (Slot slot = 5000; slot < 12'000; ++slot) array.At(slot) = slot;
  std::vector<Slot> slots;
  for (uint32_t i = 0; i < 2000; ++i) {
    const Slot first = rng.UniformInt(0, i, kSlots - 4);
    for (Slot slot = first; slot < first + 4; ++slot) slots.push_back(slot);
  }
  std::vector<int64_t> values(slots.size(), -1);
  array.GetMany(slots, values.data());
  for (size_t i = 0; i < slots.size(); ++i) {
    ASSERT_EQ(values[i], array.Get(slots[i])) << slots[i];
  }
}

TEST(SlotArrayTest, ThoseThatLieAnywhereAreThoseOneByOne) {
  constexpr int64_t kSlots = 30'000;
  const Rng rng(/*seed=*/6);
  SlotArray<int64_t> array;
  array.Reset(kSlots);
  array.Fill({.first = 0, .count = 9000}, 7);
  for (Slot slot = 5000; slot < 12'000; ++slot) array.At(slot) = slot;
  for (const size_t n : {0, 1, 64, 65, 1000}) {
    std::vector<Slot> slots(n);
    for (uint32_t i = 0; i < n; ++i) slots[i] = rng.UniformInt(n, i, kSlots);
    std::vector<int64_t> values(n, -1);
    array.GetAnywhere(
        n, [&](size_t i) { return slots[i]; },
        [&](size_t i, int64_t value) { values[i] = value; });
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(values[i], array.Get(slots[i])) << slots[i];
    }
  }
}

TEST(SlotArrayTest, FilledRangesAreThoseOneByOne) {
  constexpr int64_t kSlots = 20'000;
  const Rng rng(/*seed=*/5);
  SlotArray<int64_t> array;
  array.Reset(kSlots);
  std::vector<int64_t> want(kSlots, 0);
  for (uint32_t i = 1; i <= 60; ++i) {
    const Slot first = rng.UniformInt(0, 2 * i, kSlots);
    const int64_t count = rng.UniformInt(0, 2 * i + 1, kSlots - first + 1);
    array.Fill({.first = first, .count = count}, i / 2);
    std::fill_n(want.begin() + first, count, i / 2);
    if (i % 7 == 0) want[first] = array.At(first) = -1;
    for (Slot slot = 0; slot < kSlots; ++slot) {
      ASSERT_EQ(array.Get(slot), want[slot]) << slot;
    }
  }
}

TEST(SlotArrayTest, PiecesOfARangeCoverIt) {
  SlotArray<int64_t> array;
  array.Reset(20'000);
  SlotRange rest = {.first = 4000, .count = 9000};
  while (rest.count > 0) {
    const absl::Span<int64_t> piece = array.Piece(rest);
    for (int64_t& value : piece) ++value;
    rest.first += static_cast<int64_t>(piece.size());
    rest.count -= static_cast<int64_t>(piece.size());
  }
  EXPECT_EQ(rest.count, 0);
  for (Slot slot = 0; slot < 20'000; ++slot) {
    ASSERT_EQ(array.Get(slot), slot >= 4000 && slot < 13'000) << slot;
  }
}

TEST(SlotArrayTest, SkipsWhatHasNoValue) {
  SlotArray<double> array;
  EXPECT_EQ(array.NextValue(0), 0);
  array.Reset(50'000);
  EXPECT_EQ(array.NextValue(0), 50'000);
  array.At(30'000) = 2;
  EXPECT_LE(array.NextValue(0), 30'000);
  EXPECT_GT(array.NextValue(0), 20'000);
  EXPECT_EQ(array.NextValue(30'000), 30'000);
  EXPECT_EQ(array.NextValue(40'000), 50'000);
  EXPECT_EQ(array.NextValue(50'000), 50'000);
}

TEST(SlotArrayTest, PagesOfOneValueAgreeWithAMapToo) {
  constexpr int64_t kSlots = 3 * 4096 + 100;
  const Rng rng(2);
  SlotArray<int64_t> array;
  array.Reset(kSlots);
  std::vector<int64_t> want(kSlots, 0);
  for (uint64_t i = 1; i <= 400; ++i) {
    const Slot first = rng.UniformInt(i, 0, kSlots);
    SlotRange rest = {.first = first,
                      .count = 1 + rng.UniformInt(i, 1, kSlots - first)};
    const int64_t value = rng.UniformInt(i, 2, 3);
    for (int64_t k = 0; k < rest.count; ++k) want[first + k] = value;
    while (rest.count > 0) {
      const absl::Span<int64_t> piece = array.Piece(rest);
      for (int64_t& place : piece) place = value;
      array.Compact(rest.first);
      rest.first += static_cast<int64_t>(piece.size());
      rest.count -= static_cast<int64_t>(piece.size());
    }
    for (Slot slot = 0; slot < kSlots; ++slot) {
      ASSERT_EQ(array.Get(slot), want[slot]) << i << " " << slot;
    }
    for (Slot slot = 0; slot < kSlots; slot += 100) {
      const Slot next = array.NextValue(slot);
      for (Slot between = slot; between < next; ++between) {
        ASSERT_EQ(want[between], 0);
      }
    }
  }
}

TEST(SlotArrayTest, SlotsThatWereNeverWrittenTakeNoMemory) {
  constexpr int64_t kSlots = int64_t{1} << 24;
  const int64_t before = PeakMemoryBytes();
  SlotArray<int64_t> array;
  array.Reset(kSlots);
  array.At(kSlots - 1) = 1;
  EXPECT_EQ(array.Get(0), 0);
  EXPECT_LT(PeakMemoryBytes() - before, kSlots * 8 / 4);
}

TEST(SlotArrayTest, NeighboursOfOneValueTakeNoMemory) {
  constexpr int64_t kSlots = int64_t{1} << 24;
  const int64_t before = PeakMemoryBytes();
  SlotArray<int64_t> array;
  array.Reset(kSlots);
  for (Slot slot = 0; slot < kSlots;) {
    const absl::Span<int64_t> piece =
        array.Piece({.first = slot, .count = kSlots - slot});
    for (int64_t& value : piece) value = 7;
    array.Compact(slot);
    slot += static_cast<int64_t>(piece.size());
  }
  EXPECT_EQ(array.Get(kSlots / 2), 7);
  EXPECT_LT(PeakMemoryBytes() - before, kSlots * 8 / 4);
}

}  // namespace
}  // namespace rill
