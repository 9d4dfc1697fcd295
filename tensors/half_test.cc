// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/half.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

// Eigen's types, an implementation of its own, on all 65,536 bit patterns.
TEST(HalfTest, EveryValueAgreesWithEigenAndReadsBack) {
  for (uint32_t i = 0; i < 1u << 16; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float half = Eigen::numext::bit_cast<Eigen::half>(bits);
    const float brain = Eigen::numext::bit_cast<Eigen::bfloat16>(bits);
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(ToDouble(Float16{bits}))) << i;
    } else {
      EXPECT_EQ(ToDouble(Float16{bits}), half) << i;
      EXPECT_EQ(ToFloat16(half).bits, bits) << i;
    }
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(ToDouble(BFloat16{bits}))) << i;
    } else {
      EXPECT_EQ(ToDouble(BFloat16{bits}), brain) << i;
      EXPECT_EQ(ToBFloat16(brain).bits, bits) << i;
    }
  }
}

TEST(HalfTest, RandomFloatsRoundLikeEigens) {
  const Rng rng(1);
  for (uint32_t i = 0; i < 200000; ++i) {
    const float value =
        Eigen::numext::bit_cast<float>(static_cast<uint32_t>(rng.Bits64(0, i)));
    if (std::isnan(value)) continue;
    EXPECT_EQ(ToFloat16(value).bits,
              Eigen::numext::bit_cast<uint16_t>(Eigen::half(value)))
        << value;
    EXPECT_EQ(ToBFloat16(value).bits,
              Eigen::numext::bit_cast<uint16_t>(Eigen::bfloat16(value)))
        << value;
  }
}

// Why Eigen's conversions are not used: a double goes through float there, and
// some are rounded to another value than the nearest.
TEST(HalfTest, EigenRoundsSomeDoublesTwice) {
  const Rng rng(2);
  int wrong = 0;
  for (uint32_t i = 0; i < 1'000'000; ++i) {
    const double value = 1 + rng.UniformDouble(0, i);
    const auto eigens = Eigen::half(value);
    if (ToFloat16(value).bits == Eigen::numext::bit_cast<uint16_t>(eigens)) {
      continue;
    }
    ++wrong;
    EXPECT_LT(std::fabs(ToDouble(ToFloat16(value)) - value),
              std::fabs(static_cast<double>(eigens) - value));
  }
  RecordProperty("wrong_in_a_million", wrong);
  EXPECT_GT(wrong, 0);
}

TEST(HalfTest, DoublesAreRoundedOnce) {
  // Halfway between two values plus a little: by way of float the little would
  // be lost and the tie would go down to even.
  const double above_tie = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(ToFloat16(above_tie).bits, 0x3c01);
  EXPECT_EQ(ToFloat16(1.0 + 0x1p-11).bits, 0x3c00);
}

TEST(HalfTest, ExtremesAreKept) {
  EXPECT_EQ(ToFloat16(0.0).bits, 0x0000);
  EXPECT_EQ(ToFloat16(-0.0).bits, 0x8000);
  EXPECT_EQ(ToFloat16(65504).bits, 0x7bff);
  EXPECT_EQ(ToFloat16(65520).bits, 0x7c00);  // Rounds up to infinity.
  EXPECT_EQ(ToFloat16(std::numeric_limits<double>::max()).bits, 0x7c00);
  EXPECT_EQ(ToFloat16(-INFINITY).bits, 0xfc00);
  EXPECT_EQ(ToFloat16(std::numeric_limits<double>::denorm_min()).bits, 0);
  EXPECT_TRUE(std::isnan(ToDouble(ToFloat16(NAN))));
  EXPECT_TRUE(std::isnan(ToDouble(ToBFloat16(NAN))));
}

}  // namespace
}  // namespace rill
