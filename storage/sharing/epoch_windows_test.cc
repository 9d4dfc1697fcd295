// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/sharing/epoch_windows.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/testing/step_scheduler.h"

namespace rill::storage_internal {
namespace {

using ::testing::ElementsAre;

// --- Ranges ------------------------------------------------------------------

TEST(SlotsMeetTest, IsMembership) {
  const Rng rng(1);
  for (uint64_t round = 0; round < 500; ++round) {
    uint32_t draw = 0;
    const auto below = [&](int64_t n) {
      return rng.UniformInt(round, draw++, n);
    };
    std::vector<SlotRange> ranges;
    std::set<Slot> members;
    Slot at = below(10);
    for (int64_t i = below(6); i > 0; --i) {
      ranges.push_back({at, 1 + below(4)});
      for (int64_t k = 0; k < ranges.back().count; ++k) members.insert(at + k);
      at += ranges.back().count + 1 + below(5);
    }
    for (Slot slot = -2; slot < at + 3; ++slot) {
      EXPECT_EQ(SlotsMeet({slot}, ranges), members.contains(slot)) << slot;
      EXPECT_EQ(SlotsMeet({-1, slot, at + 9}, ranges), members.contains(slot));
    }
  }
}

TEST(SlotsMeetTest, TheLargestNumbersAreApart) {
  EXPECT_FALSE(SlotsMeet({INT64_MIN, INT64_MAX, -1}, {{0, 5}}));
  EXPECT_TRUE(SlotsMeet({INT64_MAX - 1}, {{3, 1}, {INT64_MAX - 1, 1}}));
  EXPECT_FALSE(SlotsMeet({}, {{0, 5}}));
  EXPECT_FALSE(SlotsMeet({1}, {}));
}

TEST(CutWindowTest, RunsInOrderAreKeptApart) {
  std::vector<SlotRange> ranges;
  EXPECT_EQ(CutWindow({0, 1, 5, 6, 7}, 100, 100, &ranges), 5);
  EXPECT_THAT(ranges, ElementsAre(SlotRange{0, 2}, SlotRange{5, 3}));
}

TEST(CutWindowTest, SlotsInNoOrderAreOneRange) {
  std::vector<SlotRange> ranges;
  EXPECT_EQ(CutWindow({5, 6, 7, 6, 2, 9}, 100, 100, &ranges), 6);
  EXPECT_THAT(ranges, ElementsAre(SlotRange{2, 8}));
}

TEST(CutWindowTest, ALongRunBeforeTheWrapIsAWindowOfItsOwn) {
  std::vector<Slot> slots;
  for (Slot slot = 70; slot < 100; ++slot) slots.push_back(slot);
  slots.push_back(0);
  slots.push_back(1);
  std::vector<SlotRange> ranges;
  EXPECT_EQ(CutWindow(slots, 100, 100, &ranges), 30);
  EXPECT_THAT(ranges, ElementsAre(SlotRange{70, 30}));
  EXPECT_EQ(
      30 + CutWindow(absl::MakeConstSpan(slots).subspan(30), 100, 100, &ranges),
      32);
  EXPECT_THAT(ranges, ElementsAre(SlotRange{0, 2}));
}

TEST(CutWindowTest, CoversEverySlotWithinItsLimits) {
  const Rng rng(2);
  for (uint64_t round = 0; round < 500; ++round) {
    uint32_t draw = 0;
    const auto below = [&](int64_t n) {
      return rng.UniformInt(round, draw++, n);
    };
    std::vector<Slot> slots(1 + below(40));
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i] =
          i > 0 && below(9) != 0 ? slots[i - 1] + 1 + below(2) : below(30);
    }
    const int64_t max_rows = 1 + below(20);
    const size_t max_ranges = static_cast<size_t>(1 + below(5));
    std::vector<SlotRange> ranges;
    for (size_t begin = 0; begin < slots.size();) {
      const size_t end =
          begin + CutWindow(absl::MakeConstSpan(slots).subspan(begin), max_rows,
                            max_ranges, &ranges);
      ASSERT_GT(end, begin);
      ASSERT_LE(end - begin, static_cast<size_t>(max_rows));
      ASSERT_LE(ranges.size(), max_ranges);
      const std::vector<Slot> cut(slots.begin() + begin, slots.begin() + end);
      for (const Slot slot : cut) ASSERT_TRUE(SlotsMeet({slot}, ranges));
      // No more than the slots, where they are in order.
      int64_t covered = 0;
      for (size_t i = 0; i < ranges.size(); ++i) {
        if (i > 0) {
          ASSERT_GT(ranges[i].first, ranges[i - 1].first + ranges[i - 1].count);
        }
        covered += ranges[i].count;
      }
      if (std::adjacent_find(cut.begin(), cut.end(),
                             std::greater_equal<Slot>()) == cut.end()) {
        ASSERT_EQ(covered, static_cast<int64_t>(cut.size()));
      } else {
        ASSERT_EQ(ranges.size(), 1);
        ASSERT_EQ(ranges[0].first, *std::min_element(cut.begin(), cut.end()));
        ASSERT_EQ(covered, *std::max_element(cut.begin(), cut.end()) -
                               ranges[0].first + 1);
      }
      begin = end;
    }
  }
}

TEST(RunCutterTest, WindowsHaveEverySlotInItsOrder) {
  const Rng rng(3);
  for (uint64_t round = 0; round < 500; ++round) {
    uint32_t draw = 0;
    const auto below = [&](int64_t n) {
      return rng.UniformInt(round, draw++, n);
    };
    std::vector<SlotRange> runs;
    std::vector<Slot> slots;
    for (int64_t i = 1 + below(8); i > 0; --i) {
      runs.push_back({below(40), 1 + below(12)});
      for (int64_t k = 0; k < runs.back().count; ++k) {
        slots.push_back(runs.back().first + k);
      }
    }
    const int64_t max_rows = 1 + below(20);
    const size_t max_ranges = static_cast<size_t>(1 + below(3));
    RunCutter cutter(runs);
    std::vector<Slot> got;
    std::vector<SlotRange> ranges;
    while (got.size() < slots.size()) {
      const size_t before = got.size();
      const size_t count = cutter.Cut(max_rows, max_ranges, &ranges);
      ASSERT_LE(count, static_cast<size_t>(max_rows));
      ASSERT_LE(ranges.size(), max_ranges);
      for (size_t i = 0; i < ranges.size(); ++i) {
        if (i > 0) {
          ASSERT_GT(ranges[i].first, ranges[i - 1].first + ranges[i - 1].count);
        }
        for (int64_t k = 0; k < ranges[i].count; ++k) {
          got.push_back(ranges[i].first + k);
        }
      }
      ASSERT_EQ(got.size() - before, count);
      ASSERT_GT(count, 0);
    }
    ASSERT_EQ(got, slots);
  }
}

// --- Every order of steps ----------------------------------------------------

// How often this thread has tried to enter.
thread_local int64_t tries = 0;

struct ScheduledSync {
  template <typename T>
  using Atomic = ScheduledAtomic<T>;
  static void Wait(int /*round*/) { StepScheduler::Step(); }
  // Readers meet in one cell, too.
  static size_t Home() { return static_cast<size_t>(tries++ % 2); }
};

using ModelWindows = BasicEpochWindows<ScheduledSync>;

// Rows of two words that are always equal when nobody writes them.
struct ModelRow {
  int64_t head = 0;
  int64_t tail = 0;
};

struct ModelRing {
  explicit ModelRing(size_t size) : rows(size) {}
  ModelWindows windows;
  std::vector<ModelRow> rows;
  int64_t torn = 0;
  int64_t most_tries = 0;
};

// Windows of `width` slots, some of which are in no range.
void WriteRows(ModelRing* ring, absl::Span<const SlotRange> ranges, Slot width,
               int64_t value) {
  Slot end = ranges.front().first + width;
  auto writing = ring->windows.Open(ranges, end);
  for (const SlotRange& range : ranges) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      if (slot >= end) {
        end = slot + width;
        if (value % 2 == 0) {
          writing.Close();
          StepScheduler::Step();
        }
        writing.Next(end);
      }
      ring->rows[slot].head = value;
      StepScheduler::Step();
      ring->rows[slot].tail = value;
    }
  }
}

void ReadRows(ModelRing* ring, absl::Span<const Slot> slots) {
  tries = 0;
  const auto reading = ring->windows.Enter(slots);
  ring->most_tries = std::max(ring->most_tries, tries);
  for (const Slot slot : slots) {
    const int64_t head = ring->rows[slot].head;
    StepScheduler::Step();
    if (head != ring->rows[slot].tail) ++ring->torn;
  }
}

// Writers, each of a part of the rows, and readers on a ring.
void RunModel(uint64_t seed, size_t num_writers, uint64_t num_windows,
              size_t num_readers, ModelRing* ring) {
  const size_t num_rows = ring->rows.size();
  StepScheduler scheduler(seed);
  const Rng rng(seed + 1000000);
  // Within [begin, end).
  const auto range = [&](Slot begin, Slot end, uint64_t i, uint32_t k) {
    const Slot first = begin + rng.UniformInt(i, k, end - begin);
    return SlotRange{first, 1 + rng.UniformInt(i, k + 1, end - first)};
  };
  const Slot size = static_cast<Slot>(num_rows);
  const Slot share = size / static_cast<Slot>(num_writers);
  std::vector<std::function<void()>> bodies;
  for (size_t writer = 0; writer < num_writers; ++writer) {
    bodies.push_back([&, writer] {
      const Slot begin = static_cast<Slot>(writer) * share;
      const Slot end = begin + share;
      for (uint64_t i = 0; i < num_windows; ++i) {
        const uint64_t draw = 1000 * writer + i;
        std::vector<SlotRange> ranges = {range(begin, end, draw, 0)};
        // A second range, apart from the first.
        const Slot next = ranges[0].first + ranges[0].count + 1;
        if (next < end) ranges.push_back({next, 1});
        WriteRows(ring, ranges, 1 + rng.UniformInt(draw, 2, 3),
                  static_cast<int64_t>(i) + 1);
      }
    });
  }
  for (size_t reader = 1; reader <= num_readers; ++reader) {
    bodies.push_back([&, reader] {
      for (uint64_t i = 0; i < 4; ++i) {
        const SlotRange a = range(0, size, 10000 * reader + i, 0);
        ReadRows(ring, {a.first, a.first + a.count - 1});
      }
    });
  }
  scheduler.Run(std::move(bodies));
  EXPECT_LT(scheduler.steps(), 60000) << "seed " << seed;
}

TEST(EpochWindowsModelTest, NoOrderOfStepsTearsARow) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ModelRing ring(6);
    RunModel(seed, /*num_writers=*/1, /*num_windows=*/6, /*num_readers=*/3,
             &ring);
    ASSERT_EQ(ring.torn, 0) << "seed " << seed;
  }
}

TEST(EpochWindowsModelTest, WritersOfDifferentRowsTearNone) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    ModelRing ring(6);
    RunModel(seed, /*num_writers=*/3, /*num_windows=*/4, /*num_readers=*/2,
             &ring);
    ASSERT_EQ(ring.torn, 0) << "seed " << seed;
  }
}

TEST(EpochWindowsModelTest, MoreWritersThanWindowsTakeTurns) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    ModelRing ring(ModelWindows::kWriters + 2);
    RunModel(seed, /*num_writers=*/ModelWindows::kWriters + 2,
             /*num_windows=*/2, /*num_readers=*/2, &ring);
    ASSERT_EQ(ring.torn, 0) << "seed " << seed;
  }
}

TEST(EpochWindowsModelTest, NobodyStarvesOnTheSmallestRing) {
  int64_t most_tries = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ModelRing ring(1);
    RunModel(seed, /*num_writers=*/1, /*num_windows=*/60, /*num_readers=*/2,
             &ring);
    most_tries = std::max(most_tries, ring.most_tries);
    ASSERT_EQ(ring.torn, 0) << "seed " << seed;
    // One more window may have passed the writer's look at who starves.
    ASSERT_LE(ring.most_tries, ModelWindows::kMaxTries + 3) << "seed " << seed;
  }
  EXPECT_GT(most_tries, ModelWindows::kMaxTries);  // Some had to ask.
}

TEST(EpochWindowsModelTest, WhoContestsWhileTheWriterWaitsIsHeard) {
  constexpr Slot kSize = 4;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ModelRing ring(kSize);
    StepScheduler scheduler(seed);
    // Stays inside for a while with the row of the last window.
    const auto read = [&] {
      for (int i = 0; i < 4; ++i) {
        ReadRows(&ring, std::vector<Slot>(12, kSize - 1));
      }
    };
    scheduler.Run({[&] {
                     for (int64_t i = 1; i < 3; ++i) {
                       WriteRows(&ring, {{0, kSize}}, /*width=*/1, i);
                     }
                   },
                   read, read});
    ASSERT_EQ(ring.torn, 0) << "seed " << seed;
  }
}

TEST(EpochWindowsModelTest, NobodyStarvesBetweenTheWindowsOfABatch) {
  int64_t most_tries = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    constexpr Slot kSize = 40;
    ModelRing ring(kSize);
    StepScheduler scheduler(seed);
    scheduler.Run({[&] {
                     WriteRows(&ring, {{0, kSize}}, /*width=*/1, 1);
                   },
                   [&] {
                     // Has a row in each window as long as there is one.
                     std::vector<Slot> slots(kSize);
                     for (Slot slot = 0; slot < kSize; ++slot) {
                       slots[slot] = slot;
                     }
                     ReadRows(&ring, slots);
                   }});
    most_tries = std::max(most_tries, ring.most_tries);
    ASSERT_EQ(ring.torn, 0) << "seed " << seed;
    ASSERT_LE(ring.most_tries, ModelWindows::kMaxTries + 4) << "seed " << seed;
  }
  EXPECT_GT(most_tries, ModelWindows::kMaxTries);
}

// --- Threads -----------------------------------------------------------------

TEST(EpochWindowsTest, ReadersOfOtherRowsGoOnWhileAWindowIsOpen) {
  EpochWindows windows;
  const auto window = windows.Open({{4, 2}, {9, 1}});
  const auto one = windows.Enter({3, 6, 8, 10});
  const auto two = windows.Enter({});
}

TEST(EpochWindowsTest, AWindowOpensWhileAnotherIsOpen) {
  EpochWindows windows;
  const auto one = windows.Open({{4, 2}});
  const auto two = windows.Open({{9, 1}});
  const auto reading = windows.Enter({3, 6, 8, 10});
}

TEST(EpochWindowsTest, ReadersOfOtherRowsAreWaitedForOnceABatch) {
  EpochWindows windows;
  auto writing = windows.Open({{0, 30}, {50, 10}}, 10);
  const auto reading = windows.Enter({40, 60});
  writing.Next(20);
  writing.Next(60);
}

TEST(EpochWindowsTest, ReadersOfOtherWindowsGoOn) {
  EpochWindows windows;
  auto writing = windows.Open({{0, 30}, {50, 10}}, 10);
  { const auto to_come = windows.Enter({10, 29, 50, 59}); }
  writing.Next(20);
  const auto written = windows.Enter({0, 9});
  const auto to_come = windows.Enter({20, 59});
}

TEST(EpochWindowsTest, NobodyWaitsForAWriterBetweenItsWindows) {
  EpochWindows windows;
  auto writing = windows.Open({{0, 30}}, 10);
  writing.Close();
  { const auto all = windows.Enter({0, 9, 10, 29}); }
  writing.Next(20);
  const auto written = windows.Enter({0, 9});
}

TEST(EpochWindowsTest, WhoReadsRowsToComeIsWaitedFor) {
  EpochWindows windows;
  auto writing = windows.Open({{0, 30}}, 10);
  std::atomic<bool> has_left{false};
  auto reading = windows.Enter({15});
  std::thread writer([&] {
    writing.Next(20);
    EXPECT_TRUE(has_left);
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  has_left = true;
  reading.Leave();
  writer.join();
}

TEST(EpochWindowsTest, MoreReadersThanCountersTakeTurns) {
  EpochWindows windows;
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 100; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        const auto reading = windows.Enter({1});
        inside.fetch_add(1);
        std::this_thread::yield();
        inside.fetch_sub(1);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const auto window = windows.Open({{1, 1}});
    EXPECT_EQ(inside, 0);
  }
  for (std::thread& thread : threads) thread.join();
}

// Plain words, many threads: what a race detector shall look at.
TEST(EpochWindowsTest, PlainRowsAreNeverTorn) {
  constexpr int64_t kRows = 8;
  struct Row {
    int64_t words[5] = {};
  };
  std::vector<Row> rows(kRows);
  EpochWindows windows;
  std::mutex write_mutex;
  std::atomic<int> writers_left{2};
  std::atomic<int> readers_there{0};  // Writers begin when all are.
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      const Rng rng(writer);
      while (readers_there < 3) std::this_thread::yield();
      for (uint64_t i = 0; i < 20000; ++i) {
        const Slot first = rng.UniformInt(i, 0, kRows);
        const SlotRange range = {first,
                                 1 + rng.UniformInt(i, 1, kRows - first)};
        const std::lock_guard<std::mutex> lock(write_mutex);
        auto writing = windows.Open({range}, first + 2);
        for (Slot slot = first; slot < first + range.count; ++slot) {
          if (slot > first && (slot - first) % 2 == 0) writing.Next(slot + 2);
          for (int64_t& word : rows[slot].words) word = 2 * i + writer;
        }
      }
      --writers_left;
    });
  }
  std::atomic<int64_t> torn{0};
  for (uint64_t reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&, reader] {
      const Rng rng(10 + reader);
      ++readers_there;
      for (uint64_t i = 0; writers_left > 0; ++i) {
        const Slot slots[2] = {rng.UniformInt(i, 0, kRows),
                               rng.UniformInt(i, 1, kRows)};
        const auto reading = windows.Enter(slots);
        for (const Slot slot : slots) {
          const Row row = rows[slot];
          for (const int64_t word : row.words) torn += word != row.words[0];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace rill::storage_internal
