// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/draw_gate.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::replay_internal {
namespace {

void Draw(const SamplePlan* plan, DrawGate& gate) {
  gate.BeginDraw();
  gate.Hold(plan);
  gate.EndDraw();
}

void GiveOthersTime() {
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
}

// Whether `wait`, of a write on another thread, is over before the plan is
// released. Where it should be it is called here, and a wait has no end.
bool Waits(bool is_expected, const SamplePlan& plan, DrawGate& gate,
           const std::function<void()>& wait) {
  if (!is_expected) {
    gate.BeginWrite();
    wait();
    gate.EndWrite(0);
    return false;
  }
  std::atomic<bool> has_turn = false;
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    gate.BeginWrite();
    has_turn = true;
    wait();
    is_over = true;
    gate.EndWrite(0);
  });
  while (!has_turn) std::this_thread::yield();
  GiveOthersTime();
  const bool has_waited = !is_over;
  gate.Release(&plan);
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

// Whether a draw that comes now has its turn before `end` is called.
bool DrawComesFirst(DrawGate& gate, const std::function<void()>& end) {
  std::atomic<bool> has_begun = false;
  std::atomic<bool> is_drawn = false;
  std::thread drawer([&] {
    has_begun = true;
    gate.BeginDraw();
    is_drawn = true;
    gate.EndDraw();
  });
  while (!has_begun) std::this_thread::yield();
  GiveOthersTime();
  const bool came_first = is_drawn;
  end();
  drawer.join();
  return came_first;
}

TEST(DrawGateTest, AppendWaitsForTheRowsOfItsWindowAndNoOthers) {
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
    DrawGate gate;
    const int64_t in_flight = rng.UniformInt(i, 8, 3);
    gate.BeginWrite();
    gate.WaitForRows({.lanes = kLanes, .steps = in_flight});
    gate.Retired(0);
    Draw(&plan, gate);
    bool is_overwritten = false;
    for (int64_t lane = 0; lane < window.num_lanes; ++lane) {
      for (int64_t step = 0; step < window.steps + in_flight; ++step) {
        const int64_t at = window.first_lane + lane;
        is_overwritten |=
            slot == kLanes.SlotOf(at, (window.cursors[at].written + step) %
                                          kLanes.capacity);
      }
    }
    EXPECT_EQ(
        Waits(is_overwritten, plan, gate, [&] { gate.WaitForRows(window); }),
        is_overwritten)
        << "case " << i;
    waits += is_overwritten ? 1 : 0;
    gate.EndWrite(in_flight);
    if (HasFailure()) return;
  }
  EXPECT_GT(waits, 50);
  EXPECT_LT(waits, 350);
}

TEST(DrawGateTest, RowsUpToTheFirstHeldOneMayBeOverwritten) {
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
    DrawGate gate;
    const SamplePlan first = PlanWith(below(at), below(2));
    const SamplePlan second = PlanWith(below(at), below(2));
    Draw(&first, gate);
    Draw(&second, gate);
    const auto before = [&](const SamplePlan& plan) {
      int64_t row = done;
      while (row < size && rows[row] != plan.draws[0].slot) ++row;
      return row - done;
    };
    int64_t got = 0;
    const auto wait = [&] { got = gate.BeforeOverwrite(ranges, done); };
    if (before(first) > 0 && before(second) > 0) {
      wait();
      EXPECT_EQ(got, std::min(before(first), before(second))) << "case " << i;
      continue;
    }
    ++waits;
    const SamplePlan& in_the_way = before(first) == 0 ? first : second;
    gate.Release(before(first) == 0 ? &second : &first);
    EXPECT_TRUE(Waits(true, in_the_way, gate, wait));
    EXPECT_EQ(got, size - done) << "case " << i;
    if (HasFailure()) return;
  }
  EXPECT_GT(waits, 20);
}

// Its rows are retired, so that no batch to come has one.
TEST(DrawGateTest, DrawsGoOnWhileAWriteWaitsForRowsThatItOverwrites) {
  DrawGate gate;
  const SamplePlan plan = PlanWith(5, 0);
  Draw(&plan, gate);
  gate.BeginWrite();
  gate.WillRetire(3);
  EXPECT_FALSE(DrawComesFirst(gate, [&] { gate.Retired(3); }));
  const std::vector<SlotRange> rows = {{4, 3}};
  EXPECT_EQ(gate.BeforeOverwrite(rows, 0), 1);
  std::atomic<int64_t> may_change = 0;
  std::thread writer([&] { may_change = gate.BeforeOverwrite(rows, 1); });
  const SamplePlan next = PlanWith(8, 0);
  Draw(&next, gate);
  EXPECT_EQ(may_change, 0);
  gate.Release(&plan);
  writer.join();
  EXPECT_EQ(may_change, 2);
  gate.EndWrite(0);
}

TEST(DrawGateTest, AppendThatEndsAfterTheCursorsWereReadStillCounts) {
  DrawGate gate;
  const SamplePlan plan = PlanWith(5, 0);  // Of the second append's rows.
  Draw(&plan, gate);
  gate.BeginWrite();
  AppendWindow first = {.lanes = {.count = 1, .capacity = 9},
                        .num_lanes = 1,
                        .steps = 4,
                        .cursors = {{9}}};
  gate.WaitForRows(first);
  gate.Retired(4);
  EXPECT_TRUE(Waits(true, plan, gate, [&] {
    AppendWindow second = first;  // With the cursors of before the first.
    std::thread([&] { gate.EndWrite(4); }).join();
    gate.WaitForRows(second);
  }));
}

TEST(DrawGateTest, WriteInPlaceWaitsForItsSlotsAndNoOthers) {
  for (int64_t place = 0; place < 3; ++place) {
    DrawGate gate;
    const SamplePlan plan = PlanWith(5, place);
    Draw(&plan, gate);
    const std::vector<Slot> others = {1, 4, 6};
    const std::vector<Slot> slots = {4, 5};
    EXPECT_FALSE(Waits(false, plan, gate, [&] { gate.WaitForRows(others); }));
    EXPECT_TRUE(Waits(true, plan, gate, [&] { gate.WaitForRows(slots); }));
    EXPECT_FALSE(gate.HoldsAny());
  }
}

// The draws' own slots are no rows of a plan that lists its rows.
TEST(DrawGateTest, DrawsOfAPlanThatListsItsRowsAreNotHeld) {
  DrawGate gate;
  SamplePlan plan;
  plan.draws = {{.slot = 3}};
  plan.rows = {8, 9};
  Draw(&plan, gate);
  const std::vector<Slot> slots = {3};
  EXPECT_FALSE(Waits(false, plan, gate, [&] { gate.WaitForRows(slots); }));
}

TEST(DrawGateTest, WaitForAllWaitsForTheLastPlan) {
  DrawGate gate;
  const SamplePlan first = PlanWith(1, 0);
  const SamplePlan second = PlanWith(2, 0);
  gate.BeginDraw();
  gate.Hold(&first);
  gate.Hold(&second);
  gate.EndDraw();
  gate.Release(&first);
  EXPECT_TRUE(Waits(true, second, gate, [&] { gate.WaitForAll(); }));
}

TEST(DrawGateTest, DrawsWaitUntilTheWriteHasRetiredItsRows) {
  DrawGate gate;
  gate.BeginWrite();
  gate.WaitForRows(
      {.lanes = {.count = 1, .capacity = 4}, .num_lanes = 1, .steps = 2});
  // An event of another write on the storage, on another thread.
  std::thread([&] { gate.Retired(2); }).join();
  EXPECT_FALSE(DrawComesFirst(gate, [&] { gate.Retired(2); }));
  // Copying of rows, still a write.
  gate.BeginDraw();
  gate.EndDraw();
  gate.Retired(2);  // A second event changes nothing.
  gate.EndWrite(2);
  gate.BeginWrite();
  EXPECT_FALSE(DrawComesFirst(gate, [&] { gate.EndWrite(0); }));
}

TEST(DrawGateTest, DrawsWaitForTheLastOfSeveralEventsOfAWrite) {
  DrawGate gate;
  gate.BeginWrite();
  gate.WaitForRows({.lanes = {.count = 3, .capacity = 4},
                    .num_lanes = 3,
                    .steps = 7});  // Four of them stay.
  gate.Retired(8);
  EXPECT_FALSE(DrawComesFirst(gate, [&] { gate.Retired(4); }));
  gate.EndWrite(7);
  gate.BeginWrite();
  const std::vector<Slot> slots = {2, 9, 9};
  gate.WaitForRows(slots);
  gate.Retired(1);
  EXPECT_FALSE(DrawComesFirst(gate, [&] { gate.Retired(2); }));
  gate.EndWrite(0);
}

// One whose rows are not known before.
TEST(DrawGateTest, DrawsWaitUntilTheEndOfAWriteThatWaitsForAll) {
  DrawGate gate;
  gate.BeginWrite();
  gate.WaitForAll();
  gate.Retired(3);
  EXPECT_FALSE(DrawComesFirst(gate, [&] { gate.EndWrite(0); }));
  // The next one is an ordinary one.
  gate.BeginWrite();
  gate.Retired(1);
  gate.BeginDraw();
  gate.EndDraw();
  gate.EndWrite(0);
}

TEST(DrawGateTest, ReleaseOfWhatIsNotHeldDoesNothing) {
  DrawGate gate;
  const SamplePlan held = PlanWith(1, 0);
  const SamplePlan other = PlanWith(1, 0);
  Draw(&held, gate);
  gate.Release(&other);
  EXPECT_TRUE(gate.HoldsAny());
  gate.Release(&held);
  gate.Release(&held);
  EXPECT_FALSE(gate.HoldsAny());
}

}  // namespace
}  // namespace rill::replay_internal
