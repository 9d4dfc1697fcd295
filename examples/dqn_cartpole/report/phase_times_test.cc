// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/report/phase_times.h"

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"

namespace rill::dqn_cartpole {
namespace {

class FakeClock : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::UnixEpoch();
};

TEST(PhaseTimesTest, TimerAddsItsLifeToItsPhase) {
  FakeClock clock;
  PhaseTimes times;
  for (int i = 0; i < 2; ++i) {
    PhaseTimer timer(clock, kSample, &times);
    clock.now += absl::Milliseconds(250);
  }
  EXPECT_DOUBLE_EQ(times.seconds[kSample], 0.5);
  EXPECT_DOUBLE_EQ(times.seconds[kLearn], 0);
}

TEST(PhaseTimesTest, TableSumsToTheTotal) {
  PhaseTimes times;
  times.seconds = {1, 0.5, 0.25, 0.25, 1, 5, 0.5, 0.5};
  times.total_seconds = 10;
  EXPECT_EQ(FormatPhaseTimes(times),
            "               seconds   share\n"
            "environment       1.00  10.0 %\n"
            "policy            0.50   5.0 %\n"
            "transforms        0.25   2.5 %\n"
            "write             0.25   2.5 %\n"
            "sample            1.00  10.0 %\n"
            "learn             5.00  50.0 %\n"
            "evaluate          0.50   5.0 %\n"
            "save              0.50   5.0 %\n"
            "other             1.00  10.0 %\n"
            "total            10.00 100.0 %\n");
}

}  // namespace
}  // namespace rill::dqn_cartpole
