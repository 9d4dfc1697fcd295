// SPDX-License-Identifier: Apache-2.0
// A ring that is lost hangs these tests.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/doorbell.h"

namespace rill {
namespace {

// Each piece of work is put there while somebody is about to sleep, or does.
TEST(DoorbellThreadsTest, RingThatComesBetweenTheLookAndTheSleepIsNotMissed) {
  Doorbell bell;
  std::atomic<int> work = 0;
  std::atomic<int> done = 0;
  constexpr int kPieces = 20'000;
  std::thread worker([&] {
    while (done < kPieces) {
      const uint64_t seen = bell.rings();
      if (work.exchange(0) > 0) {
        ++done;
      } else {
        bell.Await(seen);
      }
    }
  });
  for (int piece = 0; piece < kPieces; ++piece) {
    work = 1;
    bell.Ring();
    while (done <= piece) std::this_thread::yield();
  }
  worker.join();
  EXPECT_EQ(bell.rings(), kPieces);
}

TEST(DoorbellThreadsTest, OneRingWakesAllWhoSleep) {
  Doorbell bell;
  std::atomic<int> awake = 0;
  const uint64_t seen = bell.rings();
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 4; ++i) {
    sleepers.emplace_back([&] {
      bell.Await(seen);
      ++awake;
    });
  }
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
  EXPECT_EQ(awake, 0);
  bell.Ring();
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(awake, 4);
}

}  // namespace
}  // namespace rill
