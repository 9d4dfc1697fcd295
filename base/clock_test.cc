// SPDX-License-Identifier: Apache-2.0
#include "rill/base/clock.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

TEST(ClockTest, SystemClockIsTheMachines) {
  const absl::Time before = absl::Now();
  const absl::Time now = Clock::System().Now();
  // The clock may be set back between the two, but not by a day.
  EXPECT_GT(now, before - absl::Hours(24));
  EXPECT_LT(now, before + absl::Hours(24));
}

TEST(ClockTest, SystemClockIsOne) {
  EXPECT_EQ(&Clock::System(), &Clock::System());
}

TEST(ClockTest, SteadyClockIsOneAndNeverGoesBack) {
  EXPECT_EQ(&Clock::Steady(), &Clock::Steady());
  absl::Time before = Clock::Steady().Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = Clock::Steady().Now();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(ClockTest, TestsCanHoldTheTime) {
  class HeldClock : public Clock {
   public:
    absl::Time Now() const override { return absl::UnixEpoch(); }
  } held;
  const Clock& clock = held;
  EXPECT_EQ(clock.Now(), absl::UnixEpoch());
}

}  // namespace
}  // namespace rill
