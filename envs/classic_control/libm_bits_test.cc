// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/envs/classic_control/libm_bits_arrays.h"
#include "rill/testing/instruction_sets.h"

namespace rill::envs_internal {
namespace {

double LibmPowTwo(double x) {
  volatile double two = 2;
  return std::pow(x, two);
}

// Number of elements whose bits are not those of `want`.
template <typename Want>
int64_t CountWrong(const std::vector<double>& x, const std::vector<double>& got,
                   const Want& want) {
  int64_t wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = want(x[i]);
    const bool are_both_nan = std::isnan(got[i]) && std::isnan(wanted);
    wrong += !are_both_nan &&
             std::bit_cast<uint64_t>(got[i]) != std::bit_cast<uint64_t>(wanted);
  }
  return wrong;
}

void ExpectLibmBits(const std::vector<double>& x) {
  std::vector<double> to[6];
  for (auto& values : to) values.resize(x.size());
  ComputeLibmBits(x, {.sine = absl::MakeSpan(to[0]),
                      .cosine = absl::MakeSpan(to[1]),
                      .small_sine = absl::MakeSpan(to[2]),
                      .small_cosine = absl::MakeSpan(to[3]),
                      .only_cosine = absl::MakeSpan(to[4]),
                      .power = absl::MakeSpan(to[5])});
  const auto sine = [](double v) { return std::sin(v); };
  const auto cosine = [](double v) { return std::cos(v); };
  EXPECT_EQ(CountWrong(x, to[0], sine), 0);
  EXPECT_EQ(CountWrong(x, to[1], cosine), 0);
  EXPECT_EQ(CountWrong(x, to[2], sine), 0);
  EXPECT_EQ(CountWrong(x, to[3], cosine), 0);
  EXPECT_EQ(CountWrong(x, to[4], cosine), 0);
  EXPECT_EQ(CountWrong(x, to[5], LibmPowTwo), 0);
}

TEST(LibmBitsTest, AreThoseOfLibmForRandomNumbersOfAnySize) {
  std::mt19937_64 random(1);
  for (const double limit : {0.05, 0.21, 0.8, 3.2, 30.0, 512.0}) {
    SCOPED_TRACE(limit);
    std::uniform_real_distribution<double> any(-limit, limit);
    std::vector<double> x(100003);
    for (double& value : x) value = any(random);
    ForEachTarget([&] { ExpectLibmBits(x); });
  }
}

TEST(LibmBitsTest, AreThoseOfLibmWhereAQuarterTurnEnds) {
  std::vector<double> x;
  for (int quarters = -320; quarters <= 320; ++quarters) {
    double near = quarters * (std::acos(-1.0) / 4);
    for (int i = 0; i < 8; ++i) near = std::nextafter(near, -1e9);
    for (int i = 0; i < 16; ++i) {
      x.push_back(near);
      near = std::nextafter(near, 1e9);
    }
    for (int bit = 20; bit < 60; ++bit) {
      x.push_back(near + std::ldexp(1.0, -bit));
    }
  }
  ForEachTarget([&] { ExpectLibmBits(x); });
}

TEST(LibmBitsTest, AreThoseOfLibmForSpecialNumbers) {
  using Limits = std::numeric_limits<double>;
  std::vector<double> x = {0.0,
                           -0.0,
                           Limits::denorm_min(),
                           Limits::min(),
                           1e-160,
                           1e-20,
                           1e-7,
                           511.99,
                           512.0,
                           512.01,
                           1e6,
                           1e22,
                           1e160,
                           Limits::max(),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           0.785,
                           0.7853981633974483};
  ForEachTarget([&] { ExpectLibmBits(x); });
}

}  // namespace
}  // namespace rill::envs_internal
