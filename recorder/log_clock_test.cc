// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/log_clock.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"

namespace rill::recorder_internal {
namespace {

class FakeClock final : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::UnixEpoch();
};

TEST(LogClockTest, AnotherClockIsAskedEachTime) {
  FakeClock fake;
  LogClock clock(&fake);
  EXPECT_EQ(clock.Now(), absl::ZeroDuration());
  for (int i = 1; i <= 3; ++i) {
    fake.now += absl::Milliseconds(i);
    EXPECT_EQ(clock.Now(), absl::Milliseconds(i * (i + 1) / 2));
  }
}

// A counter of 3 a nanosecond.
TEST(LogClockTest, BetweenTwoLooksTheCounterIsBelieved) {
  FakeClock fake;
  LogClock clock(&fake);
  fake.now += absl::Milliseconds(2);
  EXPECT_EQ(clock.NowAt(6'000'000), absl::Milliseconds(2));
  // The clock is not asked: it still says 2 ms.
  EXPECT_EQ(clock.NowAt(7'500'000), absl::Microseconds(2500));
  fake.now += absl::Milliseconds(11);
  EXPECT_EQ(clock.NowAt(36'000'000), absl::Milliseconds(13));
}

TEST(LogClockTest, ACounterThatJumpsIsSoonForgotten) {
  constexpr uint64_t kHour = 3'600'000'000'000 * 3;
  for (const uint64_t jump : {kHour, kHour << 16, -kHour}) {
    FakeClock fake;
    LogClock clock(&fake);
    fake.now += absl::Milliseconds(2);
    EXPECT_EQ(clock.NowAt(6'000'000), absl::Milliseconds(2));
    uint64_t counter = jump;
    for (int i = 0; i < 100; ++i) {
      fake.now += absl::Milliseconds(1);
      counter += 3'000'000;
      clock.NowAt(counter);
    }
    EXPECT_EQ(clock.NowAt(counter), absl::Milliseconds(102)) << jump;
  }
}

// However long the machine leaves this thread aside between two calls.
TEST(LogClockTest, TheSteadyClockIsWhatItSays) {
  const Clock& steady = Clock::Steady();
  const absl::Time before = steady.Now();
  LogClock clock(&steady);
  const absl::Time after = steady.Now();
  const absl::Time end = after + 5 * LogClock::kTrusted;
  for (absl::Time earlier = after; earlier < end;) {
    const absl::Duration now = clock.Now();
    const absl::Time later = steady.Now();
    ASSERT_GE(now, earlier - after - LogClock::kTrusted);
    ASSERT_LE(now, later - before + LogClock::kTrusted);
    earlier = later;
  }
}

}  // namespace
}  // namespace rill::recorder_internal
