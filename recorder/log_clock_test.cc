// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/log_clock.h"

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

// However long the machine leaves this thread aside between two calls.
TEST(LogClockTest, TheSteadyClockIsWhatItSays) {
  const Clock& steady = Clock::Steady();
  const absl::Time before = steady.Now();
  LogClock clock(&steady);
  const absl::Time after = steady.Now();
  const absl::Time end = after + 50 * LogClock::kTrusted;
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
