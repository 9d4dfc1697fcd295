// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "rill/base/spin_then_block_lock.h"

namespace rill {
namespace {

TEST(SpinThenBlockLockThreadsTest, OneHolderAtATime) {
  struct {
    absl::Mutex mutex;
    int count ABSL_GUARDED_BY(mutex) = 0;
  } guarded;
  constexpr int kThreads = 4;
  constexpr int kTurns = 5'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        SpinThenBlockLock lock(&guarded.mutex);
        ++guarded.count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  SpinThenBlockLock lock(&guarded.mutex);
  EXPECT_EQ(guarded.count, kThreads * kTurns);
}

// Longer than anybody looks.
TEST(SpinThenBlockLockThreadsTest, SleepsWhereTheHolderTakesLong) {
  absl::Mutex mutex;
  std::atomic<bool> has_lock = false;
  mutex.Lock();
  std::thread waiter([&] {
    SpinThenBlockLock lock(&mutex);
    has_lock = true;
  });
  for (int i = 0; i < 2'000; ++i) std::this_thread::yield();
  EXPECT_FALSE(has_lock);
  mutex.Unlock();
  waiter.join();
  EXPECT_TRUE(has_lock);
}

}  // namespace
}  // namespace rill
