// SPDX-License-Identifier: Apache-2.0
// A ring that is lost hangs these tests.
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/wake_signal.h"

namespace rill {
namespace {

// Each piece of work is put there while somebody is about to sleep, or does.
TEST(WakeSignalThreadsTest, RingThatComesBetweenTheLookAndTheSleepIsNotMissed) {
  for (const int workers : {1, 3}) {
    WakeSignal signal(workers);
    std::atomic<int> work = 0;
    std::atomic<int> done = 0;
    std::atomic<bool> is_over = false;
    constexpr int kPieces = 10'000;
    std::vector<std::thread> threads;
    for (int i = 0; i < workers; ++i) {
      threads.emplace_back([&] {
        while (!is_over) {
          if (work.exchange(0) > 0) {
            ++done;
          } else {
            signal.Await();
          }
        }
      });
    }
    for (int piece = 0; piece < kPieces; ++piece) {
      work = 1;
      signal.Notify(1);
      while (done <= piece) std::this_thread::yield();
    }
    is_over = true;
    signal.Notify();
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(WakeSignalThreadsTest, RingWakesAsManyAsItIsForAndNoMore) {
  constexpr int kSleepers = 4;
  WakeSignal signal(kSleepers);
  std::atomic<int> awake = 0;
  std::vector<std::thread> sleepers;
  for (int i = 0; i < kSleepers; ++i) {
    sleepers.emplace_back([&] {
      signal.Await();
      ++awake;
    });
  }
  const auto expect_awake = [&](int count) {
    while (awake < count) std::this_thread::yield();
    for (int i = 0; i < 200; ++i) std::this_thread::yield();
    EXPECT_EQ(awake, count);
  };
  expect_awake(0);
  signal.Notify(1);
  expect_awake(1);
  signal.Notify();
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(awake, kSleepers);
}

}  // namespace
}  // namespace rill
