// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/request_ages.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

TEST(RequestAgesTest, ARequestThatWaitedIsAsOldAsItsWait) {
  RequestAges ages;
  // The client's clock is 1000 s behind; the way takes 1 s.
  EXPECT_EQ(ages.Of(At(1001), absl::Seconds(0)), absl::ZeroDuration());
  EXPECT_EQ(ages.Of(At(1002), absl::Seconds(1)), absl::ZeroDuration());
  const absl::Duration age = ages.Of(At(1012), absl::Seconds(2));
  EXPECT_GT(age, absl::Seconds(8.9));
  EXPECT_LE(age, absl::Seconds(9));
}

TEST(RequestAgesTest, AFasterWayShowsThatTheOthersWaited) {
  RequestAges ages;
  EXPECT_EQ(ages.Of(At(5), absl::Seconds(0)), absl::ZeroDuration());
  EXPECT_EQ(ages.Of(At(11), absl::Seconds(10)), absl::ZeroDuration());
  EXPECT_GT(ages.Of(At(15), absl::Seconds(11)), absl::Seconds(2.9));
}

TEST(RequestAgesTest, AClockThatRunsSlowerMakesNobodyOld) {
  RequestAges ages;
  for (int second = 0; second < 100'000; second += 10) {
    EXPECT_EQ(ages.Of(At(second), 0.9995 * absl::Seconds(second)),
              absl::ZeroDuration())
        << second;
  }
}

}  // namespace
}  // namespace rill
