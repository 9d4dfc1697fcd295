// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized/priority_state.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/prioritized/row_priorities.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/slots/slot.h"
#include "rill/testing/status_matchers.h"

namespace rill::samplers_internal {
namespace {

// The last `unused` of so many slots never held a row.
UsedSlots UsedOf(int64_t num_slots, int64_t unused) {
  UsedSlots used;
  const Cursor cursor = {.written = num_slots - unused};
  used.OnAttach({.count = 1, .capacity = num_slots}, {&cursor, 1});
  return used;
}

std::string Save(const RowPriorities& rows, int64_t num_slots,
                 int64_t unused = 0) {
  SavedState state("Test", 1);
  SavePriorities(rows, UsedOf(num_slots, unused), &state);
  return state.Encode();
}

absl::Status Load(absl::string_view bytes, int64_t num_slots,
                  RowPriorities* rows, int64_t unused = 0) {
  const absl::StatusOr<SavedState> state = SavedState::Decode(bytes);
  if (!state.ok()) return state.status();
  return LoadPriorities(*state, UsedOf(num_slots, unused), rows);
}

// A state of 20 slots with these numbers.
std::string StateOf(const std::vector<int64_t>& numbers) {
  SavedState state("Test", 1);
  state.Set("slots", int64_t{20});
  state.Set("priorities", numbers);
  return state.Encode();
}

TEST(PriorityStateTest, LoadsWhatWasSaved) {
  const Rng rng(/*seed=*/1);
  for (const int64_t size : {0, 1, 2, 15, 16, 17, 100, 3000}) {
    for (uint64_t round = 0; round < 20; ++round) {
      RowPriorities rows({.capacity = size});
      // Runs and single values, a run at the end or not.
      for (Slot slot = 0; slot < size;) {
        const auto draw = static_cast<uint32_t>(2 * slot);
        const int64_t run = rng.UniformInt(round, draw, 40) + 1;
        const float value = rng.UniformFloat(round, draw + 1);
        for (int64_t i = 0; i < run && slot < size; ++i)
          rows.Set(slot++, value);
      }
      RowPriorities loaded({.capacity = size});
      if (size > 0) loaded.Set(size / 2, 77.0f);
      RILL_ASSERT_OK(Load(Save(rows, size), size, &loaded));
      for (Slot slot = 0; slot < size; ++slot) {
        ASSERT_EQ(loaded.Get(slot), rows.Get(slot));
      }
    }
  }
}

TEST(PriorityStateTest, EqualPrioritiesTakeFewBytes) {
  RowPriorities rows({.capacity = 1'000'000});
  EXPECT_LE(Save(rows, 1'000'000).size(), 100u);
}

// Capacity may be far above what was ever written: what never held a row is
// not looked at, even where something stands there that never does.
TEST(PriorityStateTest, SlotsThatNeverHeldARowAreNotLookedAt) {
  RowPriorities rows({.capacity = 100});
  for (Slot slot = 0; slot < 10; ++slot) {
    rows.Set(slot, static_cast<float>(slot % 3));
  }
  const std::string state = Save(rows, 100);
  EXPECT_EQ(Save(rows, 100, 90), state);
  rows.Set(50, 5.0f);
  EXPECT_EQ(Save(rows, 100, 90), state);
  rows.Set(4, 7.0f);
  RILL_ASSERT_OK(Load(state, 100, &rows, 90));
  EXPECT_EQ(rows.Get(4), 1.0f);
  EXPECT_EQ(rows.Get(50), 5.0f);
}

TEST(PriorityStateTest, WhatDoesNotFitIsRefusedAndChangesNothing) {
  RowPriorities rows({.capacity = 20});
  rows.Set(3, 5.0f);
  const std::string before = Save(rows, 20);
  EXPECT_THAT(Load(Save(RowPriorities({.capacity = 21}), 21), 20, &rows),
              IsFailedPrecondition("got those of 21 slots, want 20"));
  constexpr int64_t kOne = 0x3F800000;
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  for (const std::vector<int64_t>& numbers : std::vector<std::vector<int64_t>>{
           {},
           {0},
           {21},
           {-21, kOne},
           {kMin, kOne},
           {-10, kOne},                                   // Ends too early.
           {-10, kOne, -11, kOne},                        // Too many.
           {-20, kOne, kOne},                             // Behind the end.
           {-10, kOne, -10},                              // Cut.
           {-10, kOne, 10, kOne},                         // Cut.
           {-10, kOne, -10, 0x7FC00000},                  // NaN.
           {-10, kOne, -10, 0x7F800000},                  // Infinite.
           {-10, kOne, -10, 0x80000000},                  // -0.
           {-18, kOne, 2, kOne | 0xBF800000LL << 32}}) {  // Below 0.
    EXPECT_THAT(Load(StateOf(numbers), 20, &rows), IsDataLoss());
    EXPECT_EQ(Save(rows, 20), before);
  }
  // A slot that never held a row.
  EXPECT_THAT(Load(StateOf({-18, kOne, 2, kOne}), 20, &rows, 2),
              IsFailedPrecondition("priority of slot 18: got one"));
  EXPECT_EQ(Save(rows, 20), before);
  RILL_EXPECT_OK(Load(StateOf({-18, kOne, 2, kOne}), 20, &rows, 1));
}

}  // namespace
}  // namespace rill::samplers_internal
