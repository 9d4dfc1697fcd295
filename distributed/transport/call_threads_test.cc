// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/call_threads.h"

#include <atomic>
#include <memory>
#include <set>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

TEST(CallThreadsTest, WorkThatWaitsForOtherWorkIsNotInItsWay) {
  CallThreads threads;
  auto* const barrier = new absl::Barrier(3);
  for (int i = 0; i < 3; ++i) {
    threads.Run([barrier] {
      if (barrier->Block()) delete barrier;
    });
  }
}

TEST(CallThreadsTest, AThreadThatIsFreeIsTaken) {
  absl::Mutex mu;
  std::set<std::thread::id> ids;
  int rests = 0;
  CallThreads threads([&](absl::FunctionRef<bool()>) {
    absl::MutexLock lock(&mu);
    ++rests;
  });
  for (int i = 0; i < 10; ++i) {
    threads.Run([&] {
      absl::MutexLock lock(&mu);
      ids.insert(std::this_thread::get_id());
    });
    absl::MutexLock lock(&mu);
    // Once before each work, and it rests again.
    const auto is_at_rest = [&] { return rests == i + 2; };
    mu.Await(absl::Condition(&is_at_rest));
  }
  EXPECT_EQ(ids.size(), 1);
}

TEST(CallThreadsTest, AnIdleThreadIsToldOfWork) {
  absl::Notification is_idle, has_run;
  CallThreads threads([&](absl::FunctionRef<bool()> has_work) {
    if (!has_run.HasBeenNotified()) return;
    if (!is_idle.HasBeenNotified()) is_idle.Notify();
    while (!has_work()) std::this_thread::yield();
  });
  threads.Run([&] { has_run.Notify(); });
  is_idle.WaitForNotification();
  absl::Notification again;
  threads.Run([&] { again.Notify(); });
  again.WaitForNotification();
}

TEST(CallThreadsTest, TheEndWaitsForAllWorkAndDestroysIt) {
  const auto held = std::make_shared<std::atomic<int>>(0);
  absl::Notification may_go;
  auto threads = std::make_unique<CallThreads>();
  for (int i = 0; i < 4; ++i) {
    threads->Run([&may_go, held] {
      may_go.WaitForNotification();
      ++*held;
    });
  }
  std::thread ends([&] { threads = nullptr; });
  may_go.Notify();
  ends.join();
  EXPECT_EQ(*held, 4);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(CallThreadsTest, AnEndOutOfWorkWaitsForTheOthersWork) {
  absl::Notification may_go, has_ended;
  std::atomic<int> done = 0;
  auto threads = std::make_unique<CallThreads>();
  threads->Run([&] {
    may_go.WaitForNotification();
    ++done;
  });
  threads->Run([&] {
    may_go.Notify();
    threads = nullptr;
    EXPECT_EQ(done, 1);
    has_ended.Notify();
  });
  has_ended.WaitForNotification();
}

}  // namespace
}  // namespace rill
