// SPDX-License-Identifier: Apache-2.0
#include "rill/base/standard_normal.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill {
namespace {

// Over a million draws each bound is six standard deviations of its moment.
TEST(StandardNormalTest, HasTheMomentsAndTailsOfOne) {
  constexpr int64_t kDraws = 1'000'000;
  const Rng rng(7);
  double sum = 0, squares = 0, fourths = 0;
  int64_t beyond_two = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const double x = StandardNormal(rng.Bits(static_cast<uint64_t>(i), 0));
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    beyond_two += std::abs(x) > 2;
  }
  const double n = kDraws;
  EXPECT_NEAR(sum / n, 0, 6 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 6 * std::sqrt(2 / n));
  EXPECT_NEAR(fourths / n, 3, 6 * std::sqrt(96 / n));
  EXPECT_NEAR(beyond_two / n, 0.0455, 6 * std::sqrt(0.0455 / n));
}

TEST(StandardNormalTest, IsFiniteForAllBits) {
  EXPECT_TRUE(std::isfinite(StandardNormal({0, 0, 0, 0})));
  const double most = StandardNormal({~0u, ~0u, 0, 0});
  EXPECT_GT(most, 8.5);
  EXPECT_LT(most, 8.6);
}

}  // namespace
}  // namespace rill
