// SPDX-License-Identifier: Apache-2.0
// Draws and writes at once, over a ring with plain bookkeeping.
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/replay/rows/drawn_rows.h"

namespace rill::replay_internal {
namespace {

constexpr Lanes kLanes = {.count = 2, .capacity = 6};

// A storage as DrawnRows sees it. Steps [reserved - capacity, published) of
// each lane are live.
class PlainRing {
 public:
  PlainRing() {
    for (auto& value : values_) value = 0;
  }

  std::vector<Cursor> cursors() const {
    absl::MutexLock lock(&mutex_);
    return {{published_[0]}, {published_[1]}};
  }
  // Rows that may be drawn.
  std::vector<Slot> LiveSlots() const {
    absl::MutexLock lock(&mutex_);
    std::vector<Slot> slots;
    for (int64_t lane = 0; lane < kLanes.count; ++lane) {
      for (int64_t step = reserved_[lane] - kLanes.capacity;
           step < published_[lane]; ++step) {
        slots.push_back(kLanes.SlotOf(lane, step % kLanes.capacity));
      }
    }
    return slots;
  }
  int64_t Retire(int64_t lane, int64_t steps) {
    absl::MutexLock lock(&mutex_);
    reserved_[lane] += steps;
    return reserved_[lane] - steps;
  }
  void Copy(int64_t lane, int64_t first, int64_t steps) {
    for (int64_t step = first; step < first + steps; ++step) {
      ++values_[kLanes.SlotOf(lane, step % kLanes.capacity)];
      std::this_thread::yield();
    }
  }
  void Publish(int64_t lane, int64_t first, int64_t steps) {
    absl::MutexLock lock(&mutex_);
    const auto is_next = [&] {
      mutex_.AssertReaderHeld();
      return published_[lane] == first;
    };
    mutex_.Await(absl::Condition(&is_next));
    published_[lane] += steps;
  }
  int64_t value(Slot slot) const { return values_[slot]; }

 private:
  mutable absl::Mutex mutex_;
  std::array<int64_t, 2> reserved_ ABSL_GUARDED_BY(mutex_) = {6, 6};
  std::array<int64_t, 2> published_ ABSL_GUARDED_BY(mutex_) = {6, 6};
  std::array<std::atomic<int64_t>, 12> values_;
};

// Writes ask before each row, or wait for all of theirs first.
class DrawnRowsThreadsTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Asks, DrawnRowsThreadsTest, ::testing::Bool());

TEST_P(DrawnRowsThreadsTest, RowsThatWereDrawnStayUntilTheyAreReleased) {
  const bool asks = GetParam();
  constexpr uint64_t kRounds = 400;
  PlainRing ring;
  DrawnRows drawn_rows;
  std::atomic<int64_t> changed = 0;
  std::atomic<int64_t> drawn = 0;
  auto draw = [&](uint64_t seed) {
    const Rng rng(seed, RngStream::kUser);
    for (uint64_t round = 0; round < kRounds; ++round) {
      std::array<SamplePlan, 2> plans;  // Two with one ticket.
      std::vector<int64_t> values;
      drawn_rows.BeginDraw();
      for (uint32_t i = 0; i < 2; ++i) {
        const std::vector<Slot> live = ring.LiveSlots();
        for (uint32_t row = 0; row < 3 && !live.empty(); ++row) {
          const Slot slot = live[rng.UniformInt(
              round, 3 * i + row, static_cast<int64_t>(live.size()))];
          plans[i].draws.push_back({.slot = slot});
          values.push_back(ring.value(slot));
        }
        drawn_rows.Hold(&plans[i]);
      }
      drawn_rows.EndDraw();
      size_t at = 0;
      for (const SamplePlan& plan : plans) {
        for (const ::rill::Draw& each : plan.draws) {
          std::this_thread::yield();
          ++drawn;
          if (ring.value(each.slot) != values[at++]) ++changed;
        }
        drawn_rows.Release(&plan);
      }
    }
  };
  auto write = [&](uint64_t seed) {
    const Rng rng(seed, RngStream::kUser);
    for (uint64_t round = 0; round < kRounds; ++round) {
      const int64_t lane = rng.UniformInt(round, 0, kLanes.count);
      const int64_t steps = 1 + rng.UniformInt(round, 1, 2);
      drawn_rows.BeginWrite();
      if (asks) {
        drawn_rows.WillRetire(steps);
      } else {
        AppendWindow window = {.lanes = kLanes,
                               .first_lane = lane,
                               .num_lanes = 1,
                               .steps = steps};
        if (drawn_rows.HoldsAny()) window.cursors = ring.cursors();
        drawn_rows.WaitForRows(std::move(window));
      }
      const int64_t first = ring.Retire(lane, steps);
      drawn_rows.Retired(steps);
      for (int64_t step = first; step < first + steps; ++step) {
        const SlotRange row = {kLanes.SlotOf(lane, step % kLanes.capacity), 1};
        if (asks) drawn_rows.BeforeOverwrite({row}, 0);
        ring.Copy(lane, step, 1);
      }
      ring.Publish(lane, first, steps);
      drawn_rows.EndWrite(asks ? 0 : steps);
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    threads.emplace_back(draw, seed);
    threads.emplace_back(write, 100 + seed);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(changed, 0);
  EXPECT_GT(drawn, 100);
  EXPECT_FALSE(drawn_rows.HoldsAny());
}

TEST(DrawnRowsTicketsTest, OneThreadsTicketsLoseNoWakeUp) {
  DrawnRows drawn_rows;
  int64_t tickets = 0;  // Guarded by the ticket.
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 500; ++i) {
        const bool is_write = (i + thread) % 2 == 0;
        is_write ? drawn_rows.BeginWrite() : drawn_rows.BeginDraw();
        ++tickets;
        is_write ? drawn_rows.EndWrite(0) : drawn_rows.EndDraw();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tickets, 2000);
}

}  // namespace
}  // namespace rill::replay_internal
