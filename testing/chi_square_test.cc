// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/chi_square.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kFalseAlarm = 1e-9;

// Draws of bucket i with probability proportional to weights[i].
std::vector<int64_t> Draw(const std::vector<double>& weights, int64_t draws) {
  double total = 0;
  for (double weight : weights) total += weight;
  std::vector<int64_t> counts(weights.size());
  const Rng rng(/*seed=*/11);
  for (int64_t i = 0; i < draws; ++i) {
    double mass = rng.UniformDouble(/*batch=*/0, i) * total;
    size_t bucket = 0;
    while (bucket + 1 < weights.size() && mass >= weights[bucket]) {
      mass -= weights[bucket++];
    }
    ++counts[bucket];
  }
  return counts;
}

// Closed forms: k = 2 gives exp(-x / 2), k = 1 gives erfc(sqrt(x / 2)), k = 4
// gives exp(-x / 2) (1 + x / 2). The bound is the header's.
TEST(ChiSquareSurvivalTest, AgreesWithClosedForms) {
  for (double x = 1e-3; x < 1200; x *= 1.1) {
    const double two = std::exp(-x / 2);
    EXPECT_NEAR(ChiSquareSurvival(x, 2) / two, 1, 1e-10) << x;
    EXPECT_NEAR(ChiSquareSurvival(x, 1) / std::erfc(std::sqrt(x / 2)), 1, 1e-10)
        << x;
    EXPECT_NEAR(ChiSquareSurvival(x, 4) / (two * (1 + x / 2)), 1, 1e-10) << x;
  }
}

// The median of chi^2_k is close to k (1 - 2 / (9k))^3 (Wilson and Hilferty,
// wrong by less than 1e-3 in probability for k >= 100).
TEST(ChiSquareSurvivalTest, MedianOfManyDegreesOfFreedomIsOneHalf) {
  for (double k : {100.0, 1000.0, 100000.0}) {
    const double median = k * std::pow(1 - 2 / (9 * k), 3);
    EXPECT_NEAR(ChiSquareSurvival(median, k), 0.5, 1e-3) << k;
  }
}

TEST(ChiSquareTestTest, StatisticIsPearsons) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const ChiSquareResult result,
      ChiSquareTest(std::vector<int64_t>{30, 70}, std::vector<double>{.5, .5}));
  EXPECT_DOUBLE_EQ(result.statistic, 16);  // 20^2 / 50 twice.
  EXPECT_EQ(result.degrees_of_freedom, 1);
  EXPECT_NEAR(result.p_value, 6.334e-5, 1e-8);
}

TEST(ChiSquareTestTest, PValuesOfACorrectSamplerAreUniform) {
  // 400 runs: the p-values themselves are tested in 10 buckets.
  const Rng rng(/*seed=*/5);
  std::vector<int64_t> histogram(10);
  for (int64_t run = 0; run < 400; ++run) {
    std::vector<int64_t> counts(8);
    for (int64_t i = 0; i < 4000; ++i) {
      ++counts[rng.UniformInt(run, i, 8)];
    }
    RILL_ASSERT_OK_AND_ASSIGN(const ChiSquareResult result,
                              ChiSquareTest(counts, UniformProbabilities(8)));
    ++histogram[static_cast<int64_t>(result.p_value * 9.999999)];
  }
  EXPECT_THAT(histogram, DistributedAs(UniformProbabilities(10), kFalseAlarm));
}

TEST(DistributedAsTest, AcceptsTheRightDistribution) {
  EXPECT_THAT(Draw({1, 2, 3, 4}, 100000),
              DistributedAs({.1, .2, .3, .4}, kFalseAlarm));
}

TEST(DistributedAsTest, RejectsAWrongDistribution) {
  // One bucket too heavy by 5 per cent of itself.
  EXPECT_THAT(Draw({1.05, 1, 1, 1}, 1 << 18),
              Not(DistributedAs(UniformProbabilities(4), kFalseAlarm)));
}

TEST(DistributedAsTest, RejectsABucketThatIsNeverDrawn) {
  EXPECT_THAT(Draw({.01, .99, 0}, 100000),
              Not(DistributedAs({.0099, .9801, .01}, kFalseAlarm)));
}

TEST(DistributedAsTest, RejectsACountWhereNoneIsPossible) {
  EXPECT_THAT((std::vector<int64_t>{5000, 5000, 1}),
              Not(DistributedAs({.5, .5, 0}, kFalseAlarm)));
  EXPECT_THAT((std::vector<int64_t>{5000, 5000, 0}),
              DistributedAs({.5, .5, 0}, kFalseAlarm));
}

TEST(DistributedAsTest, RefusesTooFewDrawsToTell) {
  const std::vector<int64_t> counts = {9, 9};
  EXPECT_THAT(counts, Not(DistributedAs({.5, .5}, kFalseAlarm)));
  EXPECT_THAT(ChiSquareTest(counts, UniformProbabilities(2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expects 9 of 18 draws, want >= 10")));
}

TEST(ChiSquareTestTest, RefusesProbabilitiesThatAreNone) {
  const std::vector<int64_t> counts = {100, 100};
  const std::vector<std::vector<double>> bad = {
      {.5, .6}, {1.5, -.5}, {.5, std::nan("")}, {1, 0}, {1}, {.3, .3, .4}};
  for (const std::vector<double>& probabilities : bad) {
    EXPECT_THAT(ChiSquareTest(counts, probabilities),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace rill
