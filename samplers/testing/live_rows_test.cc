// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/live_rows.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/slots/generations.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/status_matchers.h"

namespace rill::samplers_internal {
namespace {

// So many that going through them takes minutes.
constexpr Lanes kLanes = {.count = 1, .capacity = int64_t{1} << 34};

// Three rows in the first slots.
class LiveRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Cursor cursor;
    const SlotRange first = {.first = 0, .count = 3};
    WriteEvent event;
    event.written = {&first, 1};
    rows_.OnAttach(kLanes, {&cursor, 1});
    rows_.OnWrite(event);
  }

  // A state of these runs.
  absl::StatusOr<Generations> Load(
      const std::vector<std::pair<int64_t, int64_t>>& runs) {
    SavedState state("Test", 1);
    state.Set("lanes", kLanes.count);
    state.Set("capacity", kLanes.capacity);
    std::vector<int64_t> numbers;
    for (const auto& [length, generation] : runs) {
      numbers.insert(numbers.end(), {length, generation});
    }
    state.Set("generations", std::move(numbers));
    return rows_.Load(state);
  }

  LiveRows rows_;
};

TEST_F(LiveRowsTest, RunOfAllSlotsIsRefusedBeforeTheyAreGoneThrough) {
  EXPECT_THAT(Load({{kLanes.capacity, 5}}),
              IsFailedPrecondition("rows: got the state of 17179869184, want "
                                   "that of 3"));
}

TEST_F(LiveRowsTest, RunOfSlotsThatLostTheirRowsCostsLittle) {
  RILL_ASSERT_OK_AND_ASSIGN(const Generations loaded,
                            Load({{3, 7}, {kLanes.capacity - 3, -5}}));
  EXPECT_EQ(loaded.Get(2), 7);
  EXPECT_EQ(loaded.Get(3), -5);
  EXPECT_EQ(loaded.Get(kLanes.capacity - 1), -5);
}

TEST_F(LiveRowsTest, RunsThatCannotBeAreDataLoss) {
  using Runs = std::vector<std::pair<int64_t, int64_t>>;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kRest = kLanes.capacity - 3;
  RILL_EXPECT_OK(Load({{3, 7}, {kRest, -1}}));
  const std::pair<Runs, const char*> cases[] = {
      {{{3, 7}}, "generations: got 3 slots, want 17179869184"},
      {{{3, 7}, {0, 1}, {kRest, -1}}, "run 1 of generations: got 0 slots"},
      {{{3, 7}, {-1, 1}, {kRest + 1, -1}}, "run 1 of generations: got -1"},
      {{{3, 7}, {kRest + 1, -1}}, "slots, want [1, 17179869181]"},
      {{{3, 7}, {kMost, -1}}, "slots, want [1, 17179869181]"},
      {{{3, kMost}, {kRest, -1}},
       "run 0 of generations: got 9223372036854775807, "
       "want up to"},
      {{{3, 7}, {kRest, -kMost}},
       "run 1 of generations: got -9223372036854775807, "
       "want up to"}};
  for (const auto& [runs, what] : cases) {
    EXPECT_THAT(Load(runs), IsDataLoss(what));
  }
}

TEST_F(LiveRowsTest, StateOfOtherRowsIsRefused) {
  EXPECT_THAT(Load({{1, -1}, {3, 0}, {kLanes.capacity - 4, -1}}),
              IsFailedPrecondition("slot 3: got the state of a stored row"));
}

}  // namespace
}  // namespace rill::samplers_internal
