// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/slot_array_state.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/slots/slot.h"
#include "rill/slots/slot_array.h"
#include "rill/testing/status_matchers.h"

namespace rill::samplers_internal {
namespace {

constexpr int64_t kSlots = 9000;

template <typename T>
std::string Saved(const SlotArray<T>& array) {
  return SaveSlotArray(array).Encode();
}

template <typename T>
absl::StatusOr<SlotArray<T>> Loaded(const std::string& bytes,
                                    int64_t used_slots = kSlots) {
  RILL_ASSIGN_OR_RETURN(SavedState part, SavedState::Decode(bytes));
  SavedState state("S", 1);
  state.SetPart("array", std::move(part));
  UsedSlots used;
  const Cursor cursor = {.written = used_slots};
  used.OnAttach({.count = 1, .capacity = kSlots}, {&cursor, 1});
  return LoadSlotArray<T>(used, state, "array");
}

template <typename T>
class SlotArrayStateTest : public ::testing::Test {};
using Types = ::testing::Types<int64_t, double>;
TYPED_TEST_SUITE(SlotArrayStateTest, Types);

TYPED_TEST(SlotArrayStateTest, LoadsWhatWasSaved) {
  using T = TypeParam;
  const Rng rng(3);
  for (uint64_t round = 0; round < 20; ++round) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(round, draw++, bound);
    };
    SlotArray<T> array;
    array.Reset(kSlots);
    // Pieces that count up or down, stay, or jump; with gaps, through 0, and at
    // the ends of what T holds.
    for (int64_t piece = 0; piece < 30; ++piece) {
      const Slot first = pick(kSlots);
      const int64_t kind = pick(5);
      T value = static_cast<T>(pick(40) - 20);
      if (kind == 4) value = std::numeric_limits<T>::max();
      if (kind == 3) value = std::numeric_limits<T>::lowest();
      if (kind == 2) value = static_cast<T>(value * 0.37);
      for (Slot slot = first; slot < std::min(first + pick(60), kSlots);
           ++slot) {
        array.At(slot) = value;
        if (kind == 0) value += 1;
        if (kind == 1) value -= 1;
      }
    }
    const std::string bytes = Saved(array);
    RILL_ASSERT_OK_AND_ASSIGN(const SlotArray<T> loaded, Loaded<T>(bytes));
    for (Slot slot = 0; slot < kSlots; ++slot) {
      ASSERT_EQ(loaded.Get(slot), array.Get(slot)) << slot;
    }
    EXPECT_EQ(Saved(loaded), bytes);
  }
}

TYPED_TEST(SlotArrayStateTest, CountingAndEqualValuesAreOneRun) {
  SlotArray<TypeParam> array;
  array.Reset(kSlots);
  for (Slot slot = 0; slot < 4000; ++slot) array.At(slot) = 7;
  for (Slot slot = 4000; slot < kSlots; ++slot) {
    array.At(slot) = static_cast<TypeParam>(100 + slot);
  }
  const std::string bytes = Saved(array);
  RILL_ASSERT_OK_AND_ASSIGN(const SavedState state, SavedState::Decode(bytes));
  EXPECT_EQ(state.Ints("runs")->size(), 2u * 3);
  RILL_ASSERT_OK_AND_ASSIGN(const auto loaded, Loaded<TypeParam>(bytes));
  EXPECT_EQ(loaded.Get(3999), 7);
  EXPECT_THAT(Loaded<TypeParam>(bytes, kSlots - 1), IsFailedPrecondition());
  EXPECT_EQ(loaded.Get(8999), 9099);
}

TYPED_TEST(SlotArrayStateTest, RunsThatCannotBeAreDataLoss) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  struct Case {
    std::vector<int64_t> run;  // First, count, step.
    double value;
    const char* what;
  };
  for (const Case& c :
       std::vector<Case>{{{-1, 1, 0}, 0, "before the slots"},
                         {{0, 0, 0}, 0, "empty"},
                         {{kSlots, 1, 0}, 0, "behind the slots"},
                         {{1, kSlots, 0}, 0, "too long"},
                         {{kMax, kMax, 0}, 0, "too far"},
                         {{1, kMax, 0}, 0, "much too long"},
                         {{0, 2, 2}, 0, "step"},
                         {{0, 2, 1}, 0x1p60, "counts out of range"},
                         {{0, 2}, 0, "no step"},
                         {{0, 2, 0, 3, 2, 0}, 0, "no value"},
                         {{5, 2, 0, 6, 2, 0}, 0, "overlap"}}) {
    SavedState state("SlotArray", 1);
    state.Set("runs", c.run);
    std::vector<TypeParam> values(
        c.what == absl::string_view("overlap") ? 2 : 1,
        static_cast<TypeParam>(c.value));
    state.Set("values", std::move(values));
    EXPECT_THAT(Loaded<TypeParam>(state.Encode()), IsDataLoss()) << c.what;
  }
}

}  // namespace
}  // namespace rill::samplers_internal
