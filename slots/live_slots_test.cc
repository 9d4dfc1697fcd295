// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/live_slots.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/slots/write_observer.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr auto kNothing = [] {};

std::vector<Slot> All(const LiveSlots& live) {
  std::vector<Slot> slots;
  for (int64_t n = 0; n < live.size(); ++n) slots.push_back(live.Nth(n));
  return slots;
}

void ExpectSame(const LiveSlots& live, const StorageModel& model) {
  const std::vector<Slot> want = model.Live();
  ASSERT_THAT(All(live), ElementsAreArray(want));
  std::vector<Slot> at_once(want.size());
  std::iota(at_once.begin(), at_once.end(), 0);
  live.NthOfMany(absl::MakeSpan(at_once));
  ASSERT_THAT(at_once, ElementsAreArray(want));
  const std::set<Slot> wanted(want.begin(), want.end());
  for (Slot slot = -2; slot < model.lanes().num_slots() + 2; ++slot) {
    ASSERT_EQ(live.Contains(slot), wanted.contains(slot)) << slot;
  }
}

TEST(LiveSlotsTest, KnowsNothingBeforeItIsAttached) {
  LiveSlots live;
  EXPECT_EQ(live.size(), 0);
  EXPECT_FALSE(live.Contains(0));
}

TEST(LiveSlotsTest, LazyStorageHasNoLanesAtFirst) {
  LiveSlots live;
  live.OnAttach(Lanes(), {});
  EXPECT_EQ(live.size(), 0);
  EXPECT_FALSE(live.Contains(0));
  live.OnClear();
  StorageModel model({.count = 2, .capacity = 3}, StorageModel::kNothing);
  model.AddObserver(&live);
  model.Append({1, 1}, kNothing);
  EXPECT_THAT(All(live), ElementsAre(0, 3));
}

TEST(LiveSlotsTest, NumbersLaneAfterLaneOldestFirst) {
  LiveSlots live;
  StorageModel model({.count = 2, .capacity = 4}, StorageModel::kNothing);
  model.AddObserver(&live);
  model.Append({3, 6}, kNothing);
  EXPECT_THAT(All(live), ElementsAre(0, 1, 2, 4 + 2, 4 + 3, 4 + 0, 4 + 1));
}

TEST(LiveSlotsTest, RetiredRowsAreGoneBeforeTheNewOnesAreThere) {
  LiveSlots live;
  StorageModel model({.count = 1, .capacity = 4}, StorageModel::kNothing);
  model.AddObserver(&live);
  model.Append({4}, kNothing);
  model.Append({3}, [&] { EXPECT_THAT(All(live), ElementsAre(3)); });
  EXPECT_THAT(All(live), ElementsAre(3, 0, 1, 2));
}

TEST(LiveSlotsTest, WritingInPlaceChangesNothing) {
  LiveSlots live;
  StorageModel model({.count = 1, .capacity = 4}, StorageModel::kNothing);
  model.AddObserver(&live);
  model.Append({3}, kNothing);
  model.WriteInPlace({1},
                     [&] { EXPECT_THAT(All(live), ElementsAre(0, 1, 2)); });
  EXPECT_THAT(All(live), ElementsAre(0, 1, 2));
}

TEST(LiveSlotsTest, WritesOfSeveralWritersMayOverlap) {
  LiveSlots live;
  StorageModel model({.count = 2, .capacity = 4}, StorageModel::kNothing);
  model.AddObserver(&live);
  model.Append({4, 2}, kNothing);
  model.BeginAppend({2, 0});
  EXPECT_THAT(All(live), ElementsAre(2, 3, 4, 5));
  model.BeginAppend({1, 3});
  EXPECT_THAT(All(live), ElementsAre(3, 5));
  model.WriteInPlace({3, 3}, kNothing);
  EXPECT_THAT(All(live), ElementsAre(3, 5));
  model.FinishAppend();
  EXPECT_THAT(All(live), ElementsAre(3, 0, 1, 5));
  model.FinishAppend();
  EXPECT_THAT(All(live), ElementsAre(3, 0, 1, 2, 5, 6, 7, 4));
}

TEST(LiveSlotsTest, LanesMayHaveMoreRowsThan32BitsCount) {
  constexpr int64_t kRows = int64_t{1} << 32;
  const Lanes lanes = {.count = 2, .capacity = kRows + 5};
  LiveSlots live;
  live.OnAttach(lanes, std::vector<Cursor>(2));
  const SlotRange written[] = {{lanes.SlotOf(0, 0), kRows},
                               {lanes.SlotOf(1, 0), kRows}};
  WriteEvent event;
  event.written = written;
  live.OnWrite(event);
  EXPECT_EQ(live.size(), 2 * kRows);
  EXPECT_EQ(live.Nth(7), 7);
  EXPECT_EQ(live.Nth(kRows + 7), lanes.SlotOf(1, 7));
  std::vector<Slot> slots = {7, kRows - 1, kRows, 2 * kRows - 1};
  live.NthOfMany(absl::MakeSpan(slots));
  EXPECT_THAT(slots, ElementsAre(7, kRows - 1, lanes.SlotOf(1, 0),
                                 lanes.SlotOf(1, kRows - 1)));
}

TEST(LiveSlotsTest, ClearingStartsAgainAtTheFirstSlot) {
  LiveSlots live;
  StorageModel model({.count = 1, .capacity = 4}, StorageModel::kNothing);
  model.AddObserver(&live);
  model.Append({6}, kNothing);
  model.Clear();
  EXPECT_THAT(All(live), IsEmpty());
  model.Append({2}, kNothing);
  EXPECT_THAT(All(live), ElementsAre(0, 1));
}

TEST(LiveSlotsTest, AttachedAgainKnowsNothingOfTheFirstStorage) {
  LiveSlots live;
  StorageModel model({.count = 1, .capacity = 4}, StorageModel::kNothing);
  model.AddObserver(&live);
  model.Append({3}, kNothing);
  const Cursor empty[2];
  live.OnAttach({.count = 2, .capacity = 4}, empty);
  EXPECT_THAT(All(live), IsEmpty());
}

struct Shape {
  int64_t lanes, capacity;
};

class LiveSlotsPropertyTest : public ::testing::TestWithParam<Shape> {};

// 2,000 random operations a seed, and an observer that comes late.
TEST_P(LiveSlotsPropertyTest, AgreesWithTheModel) {
  const auto [lanes, capacity] = GetParam();
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Rng rng(seed);
    LiveSlots live;
    StorageModel model({.count = lanes, .capacity = capacity},
                       StorageModel::kNothing);
    model.AddObserver(&live);
    for (uint64_t step = 0; step < 400; ++step) {
      uint32_t draw = 0;
      const auto pick = [&](int64_t bound) {
        return rng.UniformInt(step, draw++, bound);
      };
      const auto check = [&] { ExpectSame(live, model); };
      const int64_t operation = pick(20);
      if (operation == 0) {
        while (model.appends_in_flight() > 0) model.FinishAppend();
        model.Clear();
      } else if (operation < 4 && !model.Live().empty()) {
        const std::vector<Slot> slots = model.Live();
        model.WriteInPlace({slots[pick(slots.size())]}, check);
      } else if (operation < 8 && model.appends_in_flight() > 0) {
        model.FinishAppend();
      } else if (operation < 12 || model.appends_in_flight() > 0) {
        // Before the one that is open is published.
        std::vector<int64_t> counts(lanes);
        for (int64_t lane = 0; lane < lanes; ++lane) {
          counts[lane] = pick(model.Room(lane) + 1);
        }
        model.BeginAppend(counts);
      } else {
        // Unequal lengths; now and then more than a lane holds.
        const int64_t most = pick(10) == 0 ? 2 * capacity : capacity;
        std::vector<int64_t> counts(lanes);
        for (int64_t& count : counts) count = pick(most + 1);
        model.Append(counts, check);
      }
      check();
      if (HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
      LiveSlots late;
      model.Attach(&late);
      ExpectSame(late, model);
    }
  }
}

// A thousand lanes, all in step but for some that now and then are left out or
// ahead, and so wrap around elsewhere.
TEST(LiveSlotsTest, LanesFallOutOfStepAndComeBack) {
  constexpr int64_t kLanes = 1000;
  const Rng rng(7);
  LiveSlots live;
  StorageModel model({.count = kLanes, .capacity = 4}, StorageModel::kNothing);
  model.AddObserver(&live);
  for (uint64_t step = 0; step < 120; ++step) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(step, draw++, bound);
    };
    const int64_t kind = pick(8);
    std::vector<int64_t> counts(kLanes, kind == 0 ? 3 : 1);
    if (kind == 1) std::fill_n(counts.begin() + pick(800), pick(200), 0);
    if (kind == 2) counts[pick(kLanes)] = pick(4);
    if (kind == 3) {
      model.BeginAppend(pick(500), std::vector<int64_t>(1 + pick(400), 1),
                        [](int64_t) { return StorageModel::Value(); });
      model.FinishAppend();
    } else {
      model.Append(counts, [&] {
        if (kind == 4) ExpectSame(live, model);
      });
    }
    ExpectSame(live, model);
    if (HasFatalFailure()) FAIL() << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LiveSlotsPropertyTest,
                         ::testing::Values(Shape{1, 1}, Shape{1, 5},
                                           Shape{2, 3}, Shape{3, 4},
                                           Shape{5, 1}, Shape{4, 7}));

}  // namespace
}  // namespace rill
