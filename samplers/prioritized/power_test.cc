// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized/power.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/priorities/power.h"
#include "rill/testing/instruction_sets.h"

namespace rill::samplers_internal {
namespace {

std::vector<double> Powers(const std::vector<double>& bases, double exponent) {
  std::vector<double> powers(bases.size());
  Power(bases, exponent, absl::MakeSpan(powers));
  return powers;
}

// From 2^-160 to 2^160, which floats and sums with an epsilon are within.
std::vector<double> Bases(int64_t count) {
  const Rng rng(/*seed=*/2);
  std::vector<double> bases;
  for (uint32_t i = 0; i < count; ++i) {
    bases.push_back(std::ldexp(1 + rng.UniformDouble(0, i),
                               rng.UniformInt(1, i, 320) - 160));
  }
  return bases;
}

constexpr double kExponents[] = {-1,  -0.4, -1e-9, 0.05, 0.25,
                                 0.5, 0.6,  0.7,   0.99, 2.5};

TEST(PowerTest, IsAsExactAsPromised) {
  const std::vector<double> bases = Bases(20000);
  ForEachTarget([&] {
    for (const double exponent : kExponents) {
      const std::vector<double> powers = Powers(bases, exponent);
      for (size_t i = 0; i < bases.size(); ++i) {
        const long double want = std::pow(static_cast<long double>(bases[i]),
                                          static_cast<long double>(exponent));
        ASSERT_LT(std::abs(static_cast<double>(powers[i] / want - 1)),
                  (2 + std::abs(std::log2(powers[i]))) * 4e-16)
            << bases[i] << " ^ " << exponent;
      }
    }
  });
}

TEST(PowerTest, ExactCases) {
  ForEachTarget([] {
    EXPECT_THAT(Powers({0.3, 1e-30, 7}, 0), ::testing::Each(1.0));
    EXPECT_THAT(Powers({1, 1, 1}, 0.7), ::testing::Each(1.0));
    EXPECT_EQ(Powers({0.1, 1e8 + 0.1}, 1),
              (std::vector<double>{0.1, 1e8 + 0.1}));
    EXPECT_EQ(Powers({1, 2, 4, 8}, -1),
              (std::vector<double>{1, 0.5, 0.25, 0.125}));
    EXPECT_EQ(Powers({4, 16, 0.25}, 0.5), (std::vector<double>{2, 4, 0.5}));
    EXPECT_THAT(Powers({}, 0.5), ::testing::IsEmpty());
  });
}

TEST(PowerTest, IsLimitedSoThatNoneIsZeroAndManyCanBeAdded) {
  ForEachTarget([] {
    for (const double exponent : {50.0, 1e6, 1e300}) {
      EXPECT_EQ(Powers({1e-40, 1e40}, exponent),
                (std::vector<double>{kMinPower, kMaxPower}));
      EXPECT_EQ(Powers({1e-40, 1e40}, -exponent),
                (std::vector<double>{kMaxPower, kMinPower}));
    }
    EXPECT_EQ(Powers({0x1p-1010, 0x1p1000}, 1),
              (std::vector<double>{kMinPower, kMaxPower}));
  });
}

TEST(PowerTest, DoesNotDependOnWhatStandsBesideABase) {
  const std::vector<double> bases = Bases(37);
  ForEachTarget([&] {
    const std::vector<double> together = Powers(bases, 0.6);
    for (size_t i = 0; i < bases.size(); ++i) {
      ASSERT_EQ(Powers({bases[i]}, 0.6)[0], together[i]);
    }
  });
}

// The bits themselves: other processors and compilers must come to them too.
TEST(PowerTest, GivesTheSameBitsEverywhere) {
  const std::vector<double> bases = Bases(20000);
  ForEachTarget([&] {
    uint64_t hash = 0;
    for (const double exponent : kExponents) {
      for (const double power : Powers(bases, exponent)) {
        hash = (hash ^ std::bit_cast<uint64_t>(power)) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
      }
    }
    EXPECT_EQ(hash, 6824772223441657390u);
  });
}

TEST(PowerTest, IsThatOfDevices) {
  std::vector<double> bases = Bases(2000);
  bases.insert(bases.end(), {0, 1, 1e-8, 0x1p-1010, 0x1p1000, 0x1p-126});
  for (const double exponent :
       {-1.0, -0.4, 0.0, -0.0, 0.6, 1.0, 2.5, 1e6, -1e300}) {
    const std::vector<double> powers = Powers(bases, exponent);
    for (size_t i = 0; i < bases.size(); ++i) {
      ASSERT_EQ(device_internal::Power(bases[i], exponent), powers[i])
          << bases[i] << " ^ " << exponent;
    }
  }
}

}  // namespace
}  // namespace rill::samplers_internal
