// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/kill_count.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"

namespace rill {

int64_t KillCount() {
  int64_t kills = 50;
  if (const char* const text = std::getenv("RILL_KILLS")) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &kills) && kills > 0)
        << "RILL_KILLS: got \"" << text << "\", want a number above 0";
  }
  return kills;
}

}  // namespace rill
