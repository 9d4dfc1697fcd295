// SPDX-License-Identifier: Apache-2.0
#include "rill/base/rng_entropy.h"

#include <array>
#include <cstdint>
#include <set>

#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(RngEntropyTest, NoNameComesTwice) {
  std::set<std::array<uint8_t, 16>> names;
  for (int i = 0; i < 1000; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto name, RandomName());
    EXPECT_TRUE(names.insert(name).second);
  }
}

}  // namespace
}  // namespace rill
