// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rows/drawn_rows.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::replay_internal {
namespace {

void Draw(const SamplePlan* plan, DrawnRows& drawn_rows) {
  drawn_rows.BeginDraw();
  drawn_rows.Hold(plan);
  drawn_rows.EndDraw();
}

void GiveOthersTime() {
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
}

// Tells when a write begins to wait for a gather.
class WatchedRows : public DrawnRows {
 public:
  WatchedRows() : DrawnRows([this] { waits = true; }) {}
  std::atomic<bool> waits = false;
};

// Whether `wait`, of a write on another thread, waits for the plan's release.
// Where it should not, it is called here, and a wait has no end.
bool Waits(bool is_expected, const SamplePlan& plan, WatchedRows& drawn_rows,
           const std::function<void()>& wait) {
  if (!is_expected) {
    drawn_rows.BeginWrite();
    wait();
    drawn_rows.EndWrite(0);
    return false;
  }
  drawn_rows.waits = false;
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    drawn_rows.BeginWrite();
    wait();
    is_over = true;
    drawn_rows.EndWrite(0);
  });
  while (!drawn_rows.waits && !is_over) std::this_thread::yield();
  const bool has_waited = !is_over;
  drawn_rows.Release(&plan);
  writer.join();
  return has_waited;
}

// A plan that has this row in one of the places where a plan has rows.
SamplePlan PlanWith(Slot slot, int64_t place) {
  SamplePlan plan;
  plan.draws = {{.slot = slot}};
  if (place == 0) return plan;
  plan.rows = {slot};
  if (place == 1) return plan;
  plan.draws = {{.slot = 0}};
  plan.rows = {0};
  plan.context.resize(3);
  plan.context[1].rows = {slot};
  return plan;
}

// Whether a draw that comes now has its ticket before `end` is called.
bool DrawComesFirst(DrawnRows& drawn_rows, const std::function<void()>& end) {
  std::atomic<bool> has_begun = false;
  std::atomic<bool> is_drawn = false;
  std::thread drawer([&] {
    has_begun = true;
    drawn_rows.BeginDraw();
    is_drawn = true;
    drawn_rows.EndDraw();
  });
  while (!has_begun) std::this_thread::yield();
  GiveOthersTime();
  const bool came_first = is_drawn;
  end();
  drawer.join();
  return came_first;
}

TEST(DrawnRowsTest, AppendWaitsForTheRowsOfItsWindowAndNoOthers) {
  const Rng rng(/*seed=*/5, RngStream::kUser);
  constexpr Lanes kLanes = {.count = 3, .capacity = 7};
  int64_t waits = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    AppendWindow window = {.lanes = kLanes,
                           .first_lane = rng.UniformInt(i, 0, 3),
                           .steps = rng.UniformInt(i, 1, 9)};
    window.num_lanes = 1 + rng.UniformInt(i, 2, 3 - window.first_lane);
    for (uint32_t lane = 0; lane < 3; ++lane) {
      window.cursors.push_back({7 + rng.UniformInt(i, 3 + lane, 30)});
    }
    // Slot 0 is in a lane that this window lacks, where the plan has it too.
    const bool has_context = window.first_lane > 0;
    const Slot slot = rng.UniformInt(i, 6, kLanes.num_slots());
    const SamplePlan plan =
        PlanWith(slot, rng.UniformInt(i, 7, has_context ? 3 : 2));
    WatchedRows drawn_rows;
    const int64_t in_flight = rng.UniformInt(i, 8, 3);
    drawn_rows.BeginWrite();
    drawn_rows.WaitForRows({.lanes = kLanes, .steps = in_flight});
    drawn_rows.Retired(0);
    Draw(&plan, drawn_rows);
    bool is_overwritten = false;
    for (int64_t lane = 0; lane < window.num_lanes; ++lane) {
      for (int64_t step = 0; step < window.steps + in_flight; ++step) {
        const int64_t at = window.first_lane + lane;
        is_overwritten |=
            slot == kLanes.SlotOf(at, (window.cursors[at].written + step) %
                                          kLanes.capacity);
      }
    }
    EXPECT_EQ(Waits(is_overwritten, plan, drawn_rows,
                    [&] { drawn_rows.WaitForRows(window); }),
              is_overwritten)
        << "case " << i;
    waits += is_overwritten ? 1 : 0;
    drawn_rows.EndWrite(in_flight);
    if (HasFailure()) return;
  }
  EXPECT_GT(waits, 50);
  EXPECT_LT(waits, 350);
}

TEST(DrawnRowsTest, RowsUpToTheFirstHeldOneMayBeOverwritten) {
  const Rng rng(/*seed=*/6, RngStream::kUser);
  int64_t waits = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    uint32_t draw = 0;
    const auto below = [&](int64_t n) { return rng.UniformInt(i, draw++, n); };
    std::vector<SlotRange> ranges;
    std::vector<Slot> rows;
    Slot at = below(4);
    for (int64_t k = below(12); k >= 0; --k) {
      ranges.push_back({at, 1 + below(3)});
      for (int64_t n = 0; n < ranges.back().count; ++n) rows.push_back(at++);
      at += 1 + below(3);
    }
    const auto size = static_cast<int64_t>(rows.size());
    const int64_t done = below(size);
    WatchedRows drawn_rows;
    const SamplePlan first = PlanWith(below(at), below(2));
    const SamplePlan second = PlanWith(below(at), below(2));
    Draw(&first, drawn_rows);
    Draw(&second, drawn_rows);
    const auto before = [&](const SamplePlan& plan) {
      int64_t row = done;
      while (row < size && rows[row] != plan.draws[0].slot) ++row;
      return row - done;
    };
    int64_t got = 0;
    const auto wait = [&] { got = drawn_rows.BeforeOverwrite(ranges, done); };
    if (before(first) > 0 && before(second) > 0) {
      wait();
      EXPECT_EQ(got, std::min(before(first), before(second))) << "case " << i;
      continue;
    }
    ++waits;
    const SamplePlan& in_the_way = before(first) == 0 ? first : second;
    drawn_rows.Release(before(first) == 0 ? &second : &first);
    EXPECT_TRUE(Waits(true, in_the_way, drawn_rows, wait));
    EXPECT_EQ(got, size - done) << "case " << i;
    if (HasFailure()) return;
  }
  EXPECT_GT(waits, 20);
}

// Its rows are retired, so that no batch to come has one.
TEST(DrawnRowsTest, DrawsGoOnWhileAWriteWaitsForRowsThatItOverwrites) {
  WatchedRows drawn_rows;
  const SamplePlan plan = PlanWith(5, 0);
  Draw(&plan, drawn_rows);
  drawn_rows.BeginWrite();
  drawn_rows.WillRetire(3);
  EXPECT_FALSE(DrawComesFirst(drawn_rows, [&] { drawn_rows.Retired(3); }));
  const std::vector<SlotRange> rows = {{4, 3}};
  EXPECT_EQ(drawn_rows.BeforeOverwrite(rows, 0), 1);
  std::atomic<int64_t> may_change = 0;
  std::thread writer([&] { may_change = drawn_rows.BeforeOverwrite(rows, 1); });
  const SamplePlan next = PlanWith(8, 0);
  Draw(&next, drawn_rows);
  EXPECT_EQ(may_change, 0);
  drawn_rows.Release(&plan);
  writer.join();
  EXPECT_EQ(may_change, 2);
  drawn_rows.EndWrite(0);
}

TEST(DrawnRowsTest, AppendThatEndsAfterTheCursorsWereReadStillCounts) {
  WatchedRows drawn_rows;
  const SamplePlan plan = PlanWith(5, 0);  // Of the second append's rows.
  Draw(&plan, drawn_rows);
  drawn_rows.BeginWrite();
  AppendWindow first = {.lanes = {.count = 1, .capacity = 9},
                        .num_lanes = 1,
                        .steps = 4,
                        .cursors = {{9}}};
  drawn_rows.WaitForRows(first);
  drawn_rows.Retired(4);
  EXPECT_TRUE(Waits(true, plan, drawn_rows, [&] {
    AppendWindow second = first;  // With the cursors of before the first.
    std::thread([&] { drawn_rows.EndWrite(4); }).join();
    drawn_rows.WaitForRows(second);
  }));
}

TEST(DrawnRowsTest, WriteInPlaceWaitsForItsSlotsAndNoOthers) {
  for (int64_t place = 0; place < 3; ++place) {
    WatchedRows drawn_rows;
    const SamplePlan plan = PlanWith(5, place);
    Draw(&plan, drawn_rows);
    const std::vector<Slot> others = {1, 4, 6};
    const std::vector<Slot> slots = {4, 5};
    EXPECT_FALSE(Waits(false, plan, drawn_rows,
                       [&] { drawn_rows.WaitForRows(others); }));
    EXPECT_TRUE(
        Waits(true, plan, drawn_rows, [&] { drawn_rows.WaitForRows(slots); }));
    EXPECT_FALSE(drawn_rows.HoldsAny());
  }
}

// The draws' own slots are no rows of a plan that lists its rows.
TEST(DrawnRowsTest, DrawsOfAPlanThatListsItsRowsAreNotHeld) {
  WatchedRows drawn_rows;
  SamplePlan plan;
  plan.draws = {{.slot = 3}};
  plan.rows = {8, 9};
  Draw(&plan, drawn_rows);
  const std::vector<Slot> slots = {3};
  EXPECT_FALSE(
      Waits(false, plan, drawn_rows, [&] { drawn_rows.WaitForRows(slots); }));
}

TEST(DrawnRowsTest, WaitForAllWaitsForTheLastPlan) {
  WatchedRows drawn_rows;
  const SamplePlan first = PlanWith(1, 0);
  const SamplePlan second = PlanWith(2, 0);
  drawn_rows.BeginDraw();
  drawn_rows.Hold(&first);
  drawn_rows.Hold(&second);
  drawn_rows.EndDraw();
  drawn_rows.Release(&first);
  EXPECT_TRUE(
      Waits(true, second, drawn_rows, [&] { drawn_rows.WaitForAll(); }));
}

TEST(DrawnRowsTest, DrawsWaitUntilTheWriteHasRetiredItsRows) {
  WatchedRows drawn_rows;
  drawn_rows.BeginWrite();
  drawn_rows.WaitForRows(
      {.lanes = {.count = 1, .capacity = 4}, .num_lanes = 1, .steps = 2});
  // An event of another write on the storage, on another thread.
  std::thread([&] { drawn_rows.Retired(2); }).join();
  EXPECT_FALSE(DrawComesFirst(drawn_rows, [&] { drawn_rows.Retired(2); }));
  // Copying of rows, still a write.
  drawn_rows.BeginDraw();
  drawn_rows.EndDraw();
  drawn_rows.Retired(2);  // A second event changes nothing.
  drawn_rows.EndWrite(2);
  drawn_rows.BeginWrite();
  EXPECT_FALSE(DrawComesFirst(drawn_rows, [&] { drawn_rows.EndWrite(0); }));
}

TEST(DrawnRowsTest, DrawsWaitForTheLastOfSeveralEventsOfAWrite) {
  WatchedRows drawn_rows;
  drawn_rows.BeginWrite();
  drawn_rows.WaitForRows({.lanes = {.count = 3, .capacity = 4},
                          .num_lanes = 3,
                          .steps = 7});  // Four of them stay.
  drawn_rows.Retired(8);
  EXPECT_FALSE(DrawComesFirst(drawn_rows, [&] { drawn_rows.Retired(4); }));
  drawn_rows.EndWrite(7);
  drawn_rows.BeginWrite();
  const std::vector<Slot> slots = {2, 9, 9};
  drawn_rows.WaitForRows(slots);
  drawn_rows.Retired(1);
  EXPECT_FALSE(DrawComesFirst(drawn_rows, [&] { drawn_rows.Retired(2); }));
  drawn_rows.EndWrite(0);
}

// One whose rows are not known before.
TEST(DrawnRowsTest, DrawsWaitUntilTheEndOfAWriteThatWaitsForAll) {
  WatchedRows drawn_rows;
  drawn_rows.BeginWrite();
  drawn_rows.WaitForAll();
  drawn_rows.Retired(3);
  EXPECT_FALSE(DrawComesFirst(drawn_rows, [&] { drawn_rows.EndWrite(0); }));
  // The next one is an ordinary one.
  drawn_rows.BeginWrite();
  drawn_rows.Retired(1);
  drawn_rows.BeginDraw();
  drawn_rows.EndDraw();
  drawn_rows.EndWrite(0);
}

TEST(DrawnRowsTest, ReleaseOfWhatIsNotHeldDoesNothing) {
  WatchedRows drawn_rows;
  const SamplePlan held = PlanWith(1, 0);
  const SamplePlan other = PlanWith(1, 0);
  Draw(&held, drawn_rows);
  drawn_rows.Release(&other);
  EXPECT_TRUE(drawn_rows.HoldsAny());
  drawn_rows.Release(&held);
  drawn_rows.Release(&held);
  EXPECT_FALSE(drawn_rows.HoldsAny());
}

}  // namespace
}  // namespace rill::replay_internal
