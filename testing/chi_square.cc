// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/chi_square.h"

#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rill {
namespace {

constexpr double kMinExpected = 10;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// x^a e^-x / Gamma(a), the factor of both expansions.
double Front(double a, double x) {
  return std::exp(a * std::log(x) - x - std::lgamma(a));
}

// P(a, x) by its power series; converges fast for x < a + 1.
double LowerBySeries(double a, double x) {
  double term = 1 / a;
  double sum = term;
  for (double n = a + 1; term > sum * kEpsilon; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum * Front(a, x);
}

// Q(a, x) by its continued fraction (modified Lentz), for x >= a + 1.
double UpperByFraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / b;
  double h = d;
  for (int i = 1; i < 100000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double factor = c * d;
    h *= factor;
    if (std::abs(factor - 1) < kEpsilon) break;
  }
  return h * Front(a, x);
}

absl::Status CheckInput(absl::Span<const int64_t> counts,
                        absl::Span<const double> probabilities) {
  if (counts.size() != probabilities.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("ChiSquareTest: counts: got ", counts.size(),
                     " buckets, want ", probabilities.size()));
  }
  double sum = 0;
  int64_t possible = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (!(probabilities[i] >= 0) || counts[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ChiSquareTest: bucket ", i, ": got probability ", probabilities[i],
          " and count ", counts[i], ", want both >= 0"));
    }
    sum += probabilities[i];
    possible += probabilities[i] > 0;
  }
  if (!(std::abs(sum - 1) <= 1e-9) || possible < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ChiSquareTest: probabilities: got a sum of ", sum, " over ", possible,
        " possible buckets, want 1 over at least 2"));
  }
  return absl::OkStatus();
}

}  // namespace

double ChiSquareSurvival(double statistic, double degrees_of_freedom) {
  const double a = degrees_of_freedom / 2;
  const double x = statistic / 2;
  if (x <= 0) return 1;
  if (std::isinf(x)) return 0;
  return x < a + 1 ? 1 - LowerBySeries(a, x) : UpperByFraction(a, x);
}

absl::StatusOr<ChiSquareResult> ChiSquareTest(
    absl::Span<const int64_t> counts, absl::Span<const double> probabilities) {
  if (absl::Status status = CheckInput(counts, probabilities); !status.ok()) {
    return status;
  }
  double total = 0;
  for (const int64_t count : counts) total += static_cast<double>(count);
  ChiSquareResult result;
  result.degrees_of_freedom = -1;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * probabilities[i];
    if (probabilities[i] == 0) {
      if (counts[i] > 0) {
        result.statistic = std::numeric_limits<double>::infinity();
      }
      continue;
    }
    if (expected < kMinExpected) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ChiSquareTest: bucket ", i, " expects ", expected, " of ", total,
          " draws, want >= ", kMinExpected, "; draw more or merge buckets"));
    }
    const double difference = static_cast<double>(counts[i]) - expected;
    result.statistic += difference * difference / expected;
    ++result.degrees_of_freedom;
  }
  result.p_value = ChiSquareSurvival(
      result.statistic, static_cast<double>(result.degrees_of_freedom));
  return result;
}

std::vector<double> UniformProbabilities(int64_t buckets) {
  return std::vector<double>(buckets, 1.0 / static_cast<double>(buckets));
}

namespace testing_internal {

bool DistributedAsMatcher::Test(
    absl::Span<const int64_t> counts,
    ::testing::MatchResultListener* listener) const {
  const absl::StatusOr<ChiSquareResult> result =
      ChiSquareTest(counts, probabilities_);
  if (!result.ok()) {
    *listener << "which cannot be tested: " << result.status().ToString();
    return false;
  }
  *listener << "whose chi-square is " << result->statistic << " with "
            << result->degrees_of_freedom << " degrees of freedom, p-value "
            << result->p_value;
  return result->p_value >= p_value_;
}

void DistributedAsMatcher::DescribeTo(std::ostream* os) const {
  *os << "is distributed as " << ::testing::PrintToString(probabilities_)
      << " with a p-value of at least " << p_value_;
}

void DistributedAsMatcher::DescribeNegationTo(std::ostream* os) const {
  *os << "is not distributed as " << ::testing::PrintToString(probabilities_)
      << " (p-value below " << p_value_ << ")";
}

}  // namespace testing_internal
}  // namespace rill
