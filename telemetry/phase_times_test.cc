// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/phase_times.h"

#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

class FakeClock : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::UnixEpoch();
};

TEST(PhaseTimesTest, Example) {
  FakeClock clock;
  double learn = 0;
  {
    PhaseTimer timer(clock, &learn);
    clock.now += absl::Seconds(3);
  }
  const std::string table =
      FormatPhaseTimes({{"learn", learn}}, /*total_seconds=*/4);
  EXPECT_THAT(table, HasSubstr("learn             3.00  75.0 %\n"));
}

TEST(PhaseTimesTest, TimerAddsItsLife) {
  FakeClock clock;
  double seconds = 1;
  for (int i = 0; i < 2; ++i) {
    PhaseTimer timer(clock, &seconds);
    clock.now += absl::Milliseconds(250);
  }
  EXPECT_DOUBLE_EQ(seconds, 1.5);
}

TEST(PhaseTimesTest, TableSumsToTheTotal) {
  EXPECT_EQ(FormatPhaseTimes({{"environment", 1}, {"learn", 5.5}}, 10),
            "               seconds   share\n"
            "environment       1.00  10.0 %\n"
            "learn             5.50  55.0 %\n"
            "other             3.50  35.0 %\n"
            "total            10.00 100.0 %\n");
}

TEST(PhaseTimesTest, TableOfNothingHasNoNan) {
  EXPECT_EQ(FormatPhaseTimes({}, 0),
            "               seconds   share\n"
            "other             0.00   0.0 %\n"
            "total             0.00   0.0 %\n");
}

}  // namespace
}  // namespace rill
