// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/inproc/inproc_faults.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

TEST(InprocFaultsTest, EachFaultHappensAsOftenAsAsked) {
  const InprocFaults faults = {.seed = 3,
                               .lose_request = 0.1,
                               .lose_reply = 0.2,
                               .stall = 0.05,
                               .repeat = 0.3,
                               .late = 0.15};
  constexpr int64_t kRequests = 20000;
  std::array<int64_t, 6> counts{};
  for (int64_t i = 0; i < kRequests; ++i) {
    const InprocFate fate =
        DrawInprocFate(faults, static_cast<uint64_t>(i / 100), i % 100);
    ++counts[static_cast<size_t>(fate.fault)];
    EXPECT_EQ(fate.delay, absl::ZeroDuration());
    if (fate.fault == InprocFault::kLate) {
      EXPECT_GE(fate.calls_late, 1);
      EXPECT_LE(fate.calls_late, 8);
    }
  }
  const std::array<double, 6> want = {0.2, 0.1, 0.2, 0.05, 0.3, 0.15};
  double chi_square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double expected = want[i] * kRequests;
    chi_square += std::pow(counts[i] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom, 0.1 % false alarms.
}

TEST(InprocFaultsTest, DelaysAreBelowTheirMaximum) {
  const InprocFaults faults = {.max_delay = absl::Milliseconds(8)};
  absl::Duration longest;
  for (uint32_t i = 0; i < 1000; ++i) {
    const InprocFate fate = DrawInprocFate(faults, 0, i);
    EXPECT_EQ(fate.fault, InprocFault::kNone);
    EXPECT_LT(fate.delay, absl::Milliseconds(8));
    longest = std::max(longest, fate.delay);
  }
  EXPECT_GT(longest, absl::Milliseconds(7));
}

TEST(InprocFaultsTest, WhatIsNoProbabilityIsRefusedByName) {
  const auto refuses = [](const InprocFaults& faults, const char* says) {
    EXPECT_THAT(CheckInprocFaults(faults),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says)));
  };
  refuses({.lose_request = -0.1}, "lose_request: got -0.1");
  refuses({.lose_reply = 1.5}, "lose_reply: got 1.5");
  refuses({.stall = std::numeric_limits<double>::quiet_NaN()},
          "stall: got nan");
  refuses({.repeat = 0.7, .late = 0.7}, "add up to 1.4");
  refuses({.max_delay = -absl::Seconds(1)}, "max_delay: got -1s");
  RILL_EXPECT_OK(CheckInprocFaults({.lose_request = 0.5, .late = 0.5}));
}

}  // namespace
}  // namespace rill
