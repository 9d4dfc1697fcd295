// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_CHI_SQUARE_H_
#define RILL_TESTING_CHI_SQUARE_H_

#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"

namespace rill {

// Pearson's test that counts were drawn with given probabilities:
//   X^2 = sum_i (n_i - N p_i)^2 / (N p_i), p_value = P(chi^2_k >= X^2),
// k = buckets with p_i > 0, less one. A correct sampler falls below a p-value
// of q once in 1 / q runs with fresh seeds: q is the false-alarm rate.
// Numerics: the p-value is within 1e-10 relative down to 1e-300.
struct ChiSquareResult {
  double statistic = 0;
  int64_t degrees_of_freedom = 0;
  double p_value = 1;
};

// INVALID_ARGUMENT where the test would mean nothing. That is: lengths differ;
// probabilities are negative or do not sum to 1 within 1e-9; fewer than two are
// above 0; a bucket with p_i > 0 expects fewer than 10 counts (draw more or
// merge buckets). A count in a bucket of probability 0 gives p_value 0. Cost:
// O(buckets).
absl::StatusOr<ChiSquareResult> ChiSquareTest(
    absl::Span<const int64_t> counts, absl::Span<const double> probabilities);

// P(chi^2 with `degrees_of_freedom` >= statistic): the regularised upper
// incomplete gamma function Q(k / 2, x / 2). Wants k > 0 and x >= 0.
double ChiSquareSurvival(double statistic, double degrees_of_freedom);

namespace testing_internal {

class DistributedAsMatcher {
 public:
  using is_gtest_matcher = void;
  DistributedAsMatcher(std::vector<double> probabilities, double p_value)
      : probabilities_(std::move(probabilities)), p_value_(p_value) {}

  template <typename Counts>
  bool MatchAndExplain(const Counts& counts,
                       ::testing::MatchResultListener* listener) const {
    return Test(absl::MakeConstSpan(counts), listener);
  }
  void DescribeTo(std::ostream* os) const;
  void DescribeNegationTo(std::ostream* os) const;

 private:
  bool Test(absl::Span<const int64_t> counts,
            ::testing::MatchResultListener* listener) const;

  std::vector<double> probabilities_;
  double p_value_;
};

}  // namespace testing_internal

// Matches int64_t counts whose p-value is at least `p_value`, the false-alarm
// rate that the test accepts (1e-9 where the seed is fixed anyway):
//   EXPECT_THAT(counts, DistributedAs({0.25, 0.75}, /*p_value=*/1e-9));
// Probabilities or counts that ChiSquareTest refuses never match.
inline testing_internal::DistributedAsMatcher DistributedAs(
    std::vector<double> probabilities, double p_value) {
  return testing_internal::DistributedAsMatcher(std::move(probabilities),
                                                p_value);
}

// `buckets` equal probabilities, for DistributedAs.
std::vector<double> UniformProbabilities(int64_t buckets);

}  // namespace rill

#endif  // RILL_TESTING_CHI_SQUARE_H_
