// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/random_log_prob.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// Of one lane.
double LogProb(const LeafSpec& spec, const Tensor& values) {
  std::vector<double> sums(1);
  RILL_EXPECT_OK(AddRandomLogProbs("T", spec, values, 1, absl::MakeSpan(sums)));
  return sums[0];
}
double LogProb(const LeafSpec& spec) {
  return LogProb(spec, *spec.Random({1}, Rng(2), 0));
}

TEST(RandomLogProbTest, CountsWholeNumbersAndOptions) {
  EXPECT_DOUBLE_EQ(LogProb(LeafSpec::Categorical(5)), -std::log(5));
  EXPECT_DOUBLE_EQ(LogProb(LeafSpec::OneHot(4, DType::kBool, {2})),
                   -2 * std::log(4));
  EXPECT_NEAR(LogProb(LeafSpec::MultiCategorical({2, 3})), -std::log(6), 1e-12);
  EXPECT_NEAR(LogProb(LeafSpec::MultiOneHot({2, 7})), -std::log(14), 1e-12);
  EXPECT_NEAR(LogProb(LeafSpec::Binary({3})), -std::log(8), 1e-12);
  EXPECT_NEAR(LogProb(LeafSpec::Binary({3}, DType::kFloat32)), -std::log(8),
              1e-12);
  EXPECT_NEAR(LogProb(LeafSpec::Bounded(DType::kInt32, {2}, -1, 2)),
              -2 * std::log(4), 1e-12);
  // Cut to the dtype; unbounded integers are drawn from [-100, 100].
  EXPECT_NEAR(LogProb(LeafSpec::Bounded(DType::kUInt8, {}, -1, 999)),
              -std::log(256), 1e-12);
  EXPECT_NEAR(LogProb(LeafSpec::Unbounded(DType::kInt64, {})), -std::log(201),
              1e-12);
  EXPECT_NEAR(LogProb(LeafSpec::Unbounded(DType::kUInt8, {})), -std::log(101),
              1e-12);
  const Tensor mask = *Tensor::From<bool>({true, false, true, true}, {4});
  EXPECT_NEAR(LogProb(*LeafSpec::Categorical(4).WithMask(mask)), -std::log(3),
              1e-12);
}

TEST(RandomLogProbTest, BoundsGiveTheVolumeOfTheBox) {
  EXPECT_NEAR(LogProb(LeafSpec::Bounded(DType::kFloat32, {3}, -1, 3)),
              -3 * std::log(4), 1e-12);
  const LeafSpec each =
      *LeafSpec::Bounded(*Tensor::From<double>({-2, 0}, {2}),
                         *Tensor::From<double>({2, 0.5}, {2}));
  EXPECT_NEAR(LogProb(each), -std::log(4 * 0.5), 1e-12);
  const double most = std::numeric_limits<double>::max();
  EXPECT_NEAR(LogProb(LeafSpec::Bounded(DType::kFloat64, {}, -most, most)),
              -std::log(most) - std::numbers::ln2, 1e-9);
  // Nothing is chosen.
  EXPECT_EQ(LogProb(LeafSpec::Bounded(DType::kFloat32, {2}, 1, 1)), 0);
}

TEST(RandomLogProbTest, WithoutABoundTheDensityDependsOnTheDraw) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor value = *Tensor::From<double>({1.5}, {1});
  EXPECT_NEAR(LogProb(LeafSpec::Unbounded(DType::kFloat64, {}), value),
              -1.125 - std::log(std::sqrt(2 * std::numbers::pi)), 1e-12);
  EXPECT_NEAR(LogProb(LeafSpec::Bounded(DType::kFloat64, {}, 1, inf), value),
              -0.5, 1e-12);
  EXPECT_NEAR(LogProb(LeafSpec::Bounded(DType::kFloat64, {}, -inf, 2), value),
              -0.5, 1e-12);
}

TEST(RandomLogProbTest, PartsShareTheElementsInOrder) {
  const LeafSpec spec =
      *LeafSpec::Bounded(*Tensor::From<float>({0, 0, 0, 0}, {2, 2}),
                         *Tensor::From<float>({1, 2, 4, 8}, {2, 2}));
  const Tensor values = *spec.Random({3}, Rng(1), 0);
  std::vector<double> sums(6);
  RILL_ASSERT_OK(AddRandomLogProbs("T", spec, values, 2, absl::MakeSpan(sums)));
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(sums[i], -std::log(i % 2 == 0 ? 2 : 32), 1e-12);
  }
  EXPECT_EQ(RandomDrawsPerLane(spec), 4);
  EXPECT_EQ(
      RandomDrawsPerLane(LeafSpec::MultiOneHot({2, 3}, DType::kBool, {2})), 4);
  EXPECT_THAT(AddRandomLogProbs("T", spec, values, 3, absl::MakeSpan(sums)),
              IsInvalidArgument("3 parts"));
}

}  // namespace
}  // namespace rill
