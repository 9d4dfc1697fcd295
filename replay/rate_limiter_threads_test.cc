// SPDX-License-Identifier: Apache-2.0
// A waiter that may go never waits for ever: a lost wake-up hangs these tests.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/replay/rate_limiter.h"
#include "rill/slots/slot.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr absl::StatusCode kCancelled = absl::StatusCode::kCancelled;

std::unique_ptr<RateLimiter> Make(const RateLimiter::Options& options) {
  return *RateLimiter::Create(options);
}

void SeeWaiting(const RateLimiter& limiter, int64_t inserts, int64_t samples) {
  for (;;) {
    const RateLimiter::Stats stats = limiter.GetStats();
    if (stats.inserts.waiting == inserts && stats.samples.waiting == samples) {
      return;
    }
    std::this_thread::yield();
  }
}

// A call that waits, until `change` ends it. Returns its status.
absl::Status WaitFor(RateLimiter* limiter, bool is_insert, int64_t n,
                     const std::function<void()>& change) {
  absl::Status status;
  std::thread waiter([&] {
    auto permit = is_insert ? limiter->AwaitInsert(n, absl::InfiniteFuture())
                            : limiter->AwaitSample(n, absl::InfiniteFuture());
    status = permit.status();
    if (permit.ok()) permit->Commit();
  });
  SeeWaiting(*limiter, is_insert ? 1 : 0, is_insert ? 0 : 1);
  change();
  waiter.join();
  SeeWaiting(*limiter, 0, 0);
  return status;
}

TEST(RateLimiterThreadsTest, EveryChangeWakesWhoMayGoThen) {
  const auto limiter = Make(RateLimiter::Queue(2));
  const auto insert = [&](const std::function<void()>& change) {
    return WaitFor(limiter.get(), /*is_insert=*/true, 1, change);
  };
  const auto sample = [&](const std::function<void()>& change) {
    return WaitFor(limiter.get(), /*is_insert=*/false, 1, change);
  };
  const auto await_insert = [&]() -> std::optional<RateLimiter::Permit> {
    auto permit = limiter->AwaitInsert(1, absl::InfinitePast());
    EXPECT_THAT(permit, IsOk());
    return std::move(*permit);
  };
  RILL_EXPECT_OK(sample([&] { await_insert()->Commit(); }));
  RILL_EXPECT_OK(sample([&] { RILL_EXPECT_OK(limiter->DidInsert(1)); }));
  RILL_EXPECT_OK(sample([&] {
    RILL_EXPECT_OK(limiter->SetCounts({.inserts = 3, .samples = 2}));
  }));
  RILL_EXPECT_OK(limiter->DidInsert(2));
  RILL_EXPECT_OK(insert([&] {
    auto permit = limiter->AwaitSample(1, absl::InfinitePast());
    RILL_ASSERT_OK(permit);
    permit->Commit();
  }));
  RILL_EXPECT_OK(insert([&] { RILL_EXPECT_OK(limiter->DidDelete(6)); }));
  RILL_EXPECT_OK(insert(
      [&] { RILL_EXPECT_OK(limiter->SetOptions(RateLimiter::Queue(4))); }));
  RILL_EXPECT_OK(insert([&] { RILL_EXPECT_OK(limiter->SetCounts({})); }));
}

TEST(RateLimiterThreadsTest, APermitThatGoesBackWakesTheNext) {
  const auto limiter = Make(RateLimiter::Queue(1));
  std::optional<RateLimiter::Permit> held;
  RILL_ASSERT_OK_AND_ASSIGN(held,
                            limiter->AwaitInsert(1, absl::InfinitePast()));
  RILL_EXPECT_OK(
      WaitFor(limiter.get(), /*is_insert=*/true, 1, [&] { held.reset(); }));
  RILL_ASSERT_OK_AND_ASSIGN(held,
                            limiter->AwaitSample(1, absl::InfinitePast()));
  RILL_EXPECT_OK(
      WaitFor(limiter.get(), /*is_insert=*/false, 1, [&] { held.reset(); }));
}

TEST(RateLimiterThreadsTest, NumbersThatLeaveNoWayEndAWait) {
  const auto limiter = Make(RateLimiter::MinSize(8));
  EXPECT_THAT(
      WaitFor(
          limiter.get(), /*is_insert=*/false, 5,
          [&] { RILL_EXPECT_OK(limiter->SetOptions(RateLimiter::Queue(4))); }),
      IsInvalidArgument("diff = 0 of [0, 4]"));
}

// Each would fit by itself; both are more than can be counted.
TEST(RateLimiterThreadsTest, CountsThatFillUpEndAWait) {
  const auto limiter = Make(RateLimiter::MinSize(1));
  EXPECT_THAT(WaitFor(limiter.get(), /*is_insert=*/false, kMaxWritten,
                      [&] {
                        RILL_EXPECT_OK(limiter->SetCounts(
                            {.inserts = 1, .samples = kMaxWritten}));
                      }),
              IsInvalidArgument("want [1, 0]"));
  EXPECT_EQ(limiter->GetStats().samples.in_flight, 0);
}

TEST(RateLimiterThreadsTest, CloseWakesAllWaitersForGood) {
  const auto limiter = Make(RateLimiter::MinSize(1000));
  const auto queue = Make(RateLimiter::Queue(1));
  RILL_EXPECT_OK(queue->DidInsert(1));
  std::vector<absl::Status> ends(6);
  std::vector<std::thread> waiters;
  for (size_t i = 0; i < ends.size(); ++i) {
    waiters.emplace_back([&, i] {
      ends[i] = i % 2 == 0
                    ? limiter->AwaitSample(1, absl::InfiniteFuture()).status()
                    : queue->AwaitInsert(1, absl::InfiniteFuture()).status();
    });
  }
  SeeWaiting(*limiter, 0, 3);
  SeeWaiting(*queue, 3, 0);
  limiter->Close();
  queue->Close();
  for (std::thread& waiter : waiters) waiter.join();
  for (const absl::Status& end : ends) {
    EXPECT_THAT(end, StatusIs(kCancelled, ::testing::HasSubstr("closed")));
  }
  EXPECT_THAT(queue->AwaitSample(1, absl::InfiniteFuture()),
              StatusIs(kCancelled));
  EXPECT_EQ(queue->GetStats().inserts.waits, 3);
  EXPECT_EQ(queue->GetStats().samples.waits, 0);
}

// With a queue shorter than the number of threads everybody waits for the
// others again and again.
TEST(RateLimiterThreadsTest, EveryRowIsSampledOnceWhoeverWaits) {
  constexpr int64_t kThreads = 4;
  constexpr int64_t kRows = 300;
  const auto limiter = Make(RateLimiter::Queue(2));
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 2 * kThreads; ++i) {
    threads.emplace_back([&, is_insert = i % 2 == 0] {
      for (int64_t row = 0; row < kRows; ++row) {
        const auto await = [&]() -> std::optional<RateLimiter::Permit> {
          auto permit = is_insert
                            ? limiter->AwaitInsert(1, absl::InfiniteFuture())
                            : limiter->AwaitSample(1, absl::InfiniteFuture());
          EXPECT_THAT(permit, IsOk());
          if (!permit.ok()) return std::nullopt;
          return *std::move(permit);
        };
        if (row % 7 == 3) await().reset();  // It failed, and tries again.
        auto permit = await();
        ASSERT_TRUE(permit.has_value());
        permit->Commit();
        const RateLimiter::Counts done = limiter->GetStats().done;
        EXPECT_GE(done.inserts - done.samples, 0);
        EXPECT_LE(done.inserts - done.samples, 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const RateLimiter::Stats stats = limiter->GetStats();
  EXPECT_EQ(stats.done.inserts, kThreads * kRows);
  EXPECT_EQ(stats.done.samples, kThreads * kRows);
  EXPECT_EQ(stats.inserts.in_flight, 0);
  EXPECT_EQ(stats.samples.in_flight, 0);
}

// Batches on both sides, at the narrowest range that lets both go on.
TEST(RateLimiterThreadsTest, BatchesOfBothSidesGoOnWhereTheRangeHoldsBoth) {
  constexpr int64_t kInsert = 6;
  constexpr int64_t kSample = 16;
  const auto limiter = Make({.samples_per_insert = 4,
                             .min_size_to_sample = 10,
                             .min_diff = 30,
                             .max_diff = 30 + kSample + 4 * kInsert});
  std::thread writer([&] {
    for (int64_t i = 0; i < 400; ++i) {
      auto permit = limiter->AwaitInsert(kInsert, absl::InfiniteFuture());
      RILL_ASSERT_OK(permit);
      permit->Commit();
    }
  });
  // Samples left in the range at the end: 400 * 6 * 4 - 30 at most.
  for (int64_t i = 0; i < (400 * kInsert * 4 - 30) / kSample; ++i) {
    auto permit = limiter->AwaitSample(kSample, absl::InfiniteFuture());
    RILL_ASSERT_OK(permit);
    permit->Commit();
  }
  writer.join();
}

TEST(RateLimiterThreadsTest, TimeWaitedIsThatOfTheClock) {
  struct StepClock : public Clock {
    absl::Time Now() const override {
      return absl::FromUnixSeconds(seconds.fetch_add(1));
    }
    mutable std::atomic<int64_t> seconds = 0;
  } clock;
  RILL_ASSERT_OK_AND_ASSIGN(const auto limiter,
                            RateLimiter::Create(RateLimiter::Queue(1), clock));
  RILL_EXPECT_OK(WaitFor(limiter.get(), /*is_insert=*/false, 1,
                         [&] { RILL_EXPECT_OK(limiter->DidInsert(1)); }));
  EXPECT_EQ(limiter->GetStats().samples.time_waited, absl::Seconds(1));
  EXPECT_EQ(limiter->GetStats().samples.waits, 1);
  EXPECT_EQ(limiter->GetStats().inserts.time_waited, absl::ZeroDuration());
}

}  // namespace
}  // namespace rill
