// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/slot_array.h"

#include <sys/resource.h>

#include <cstdint>
#include <map>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"

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

TEST(SlotArrayTest, SkipsWhatHasNoMemory) {
  SlotArray<double> array;
  EXPECT_EQ(array.NextWithMemory(0), 0);
  array.Reset(50'000);
  EXPECT_EQ(array.NextWithMemory(0), 50'000);
  array.At(30'000) = 2;
  EXPECT_LE(array.NextWithMemory(0), 30'000);
  EXPECT_GT(array.NextWithMemory(0), 20'000);
  EXPECT_EQ(array.NextWithMemory(30'000), 30'000);
  EXPECT_EQ(array.NextWithMemory(40'000), 50'000);
  EXPECT_EQ(array.NextWithMemory(50'000), 50'000);
}

int64_t PeakMemoryBytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
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

}  // namespace
}  // namespace rill
