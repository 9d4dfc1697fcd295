// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/observation_norm.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TensorDict BatchOf(const Tensor& observation) {
  TensorDict batch({observation.shape()[0]});
  RILL_EXPECT_OK(batch.Set("observation", observation));
  return batch;
}

// Always the same batch.
auto Again(const Tensor& observation) {
  return [observation]() -> absl::StatusOr<TensorDict> {
    return BatchOf(observation);
  };
}

TensorDictSpec WithVectorAction() {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(
      spec.Set("action", LeafSpec::Bounded(DType::kFloat32, {4}, -2, 2)));
  return spec;
}

const ObservationNorm::Options kEach = {.loc = {0.5, -1, 0, 2},
                                        .scale = {1, -2, 3, 0.25},
                                        .in_keys_inv = {"action"}};
const ObservationNorm::Options kStandard = {
    .loc = {1}, .scale = {3}, .out_keys = {"normal"}, .standard_normal = true};

TEST(ObservationNormTest, Example) {
  const auto rollout = Again(*Tensor::From<float>({1, 3}, {2, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto stats, ObservationNorm::InitStats([&] { return rollout(); },
                                             {.standard_normal = true}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto norm,
      ObservationNorm::Create(
          {.loc = stats.loc, .scale = stats.scale, .standard_normal = true}));
  EXPECT_EQ(norm->name(), "ObservationNorm");
}

TEST(ObservationNormTest, T7_ScalesAndShiftsOrTheOtherWayRound) {
  TensorDict batch = BatchOf(*Tensor::From<float>({1, 2}, {1, 2}));
  ObservationNorm::Options options = {.loc = {1}, .scale = {2}};
  RILL_ASSERT_OK((*ObservationNorm::Create(options))->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(3, 5)));
  options.standard_normal = true;
  batch = BatchOf(*Tensor::From<float>({1, 2}, {1, 2}));
  RILL_ASSERT_OK((*ObservationNorm::Create(options))->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 0.5f)));
}

TEST(ObservationNormTest, InverseUndoesEachElement) {
  for (const bool standard_normal : {false, true}) {
    auto norm = *ObservationNorm::Create({.loc = {1, -2},
                                          .scale = {2, 4},
                                          .in_keys_inv = {"observation"},
                                          .standard_normal = standard_normal});
    TensorDict batch = BatchOf(*Tensor::From<double>({1, 2, 3, 4}, {2, 2}));
    RILL_ASSERT_OK(norm->Forward(&batch, nullptr));
    const std::vector<double> want = standard_normal
                                         ? std::vector<double>{0, 1, 1, 1.5}
                                         : std::vector<double>{3, 6, 7, 14};
    EXPECT_THAT(*batch.Flat<double>("observation"),
                ::testing::ElementsAreArray(want));
    RILL_ASSERT_OK(norm->Inverse(&batch, nullptr));
    EXPECT_THAT(*batch.Flat<double>("observation"), ElementsAre(1, 2, 3, 4));
  }
}

TEST(ObservationNormTest, OptionValuesTellNumbersApart) {
  const auto values = [](const ObservationNorm::Options& options) {
    return (*ObservationNorm::Create(options))->option_values();
  };
  for (const std::vector<double>& loc :
       {std::vector<double>{1}, std::vector<double>{1, 2}}) {
    ObservationNorm::Options options = {.loc = loc, .scale = {2}};
    const OptionValues before = values(options);
    EXPECT_EQ(values(options), before);
    options.loc.back() += 1e-12;
    EXPECT_NE(values(options), before);
  }
}

TEST(ObservationNormTest, BadOptionsAreNamed) {
  EXPECT_THAT(ObservationNorm::Create({}),
              StatusIs(kInvalidArgument, AllOf(HasSubstr("loc and scale"),
                                               HasSubstr("InitStats"))));
  EXPECT_THAT(ObservationNorm::Create({.loc = {0}, .scale = {0}}),
              StatusIs(kInvalidArgument, HasSubstr("scale: got 0")));
  EXPECT_THAT(ObservationNorm::Create({.loc = {kInfinity}, .scale = {1}}),
              StatusIs(kInvalidArgument, HasSubstr("loc: got inf")));
  EXPECT_THAT(ObservationNorm::Create({.loc = {0, 1}, .scale = {1, 2, 3}}),
              StatusIs(kInvalidArgument, HasSubstr("got 3 and 2")));
  EXPECT_THAT(
      ObservationNorm::Create({.loc = {0}, .scale = {1}, .in_keys = {}}),
      StatusIs(kInvalidArgument, HasSubstr("in_keys")));
}

TEST(ObservationNormTest, RowsOfAnotherNumberOfElementsAreRefused) {
  auto norm = *ObservationNorm::Create({.loc = {0, 1, 2}, .scale = {1}});
  EXPECT_THAT(norm->ForwardSpec(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("3 numbers")));
  EXPECT_THAT(norm->PlanSteps(TedSpec()).status(), StatusIs(kInvalidArgument));
}

TEST(ObservationNormTest, AMissingKeyLeavesTheBatchAsItWas) {
  auto norm =
      *ObservationNorm::Create({.loc = {1},
                                .scale = {2},
                                .in_keys = {"observation", "missing"},
                                .in_keys_inv = {"observation", "missing"}});
  TensorDict batch = BatchOf(*Tensor::From<float>({1, 2}, {1, 2}));
  const auto is_named =
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("ObservationNorm"), HasSubstr("missing")));
  EXPECT_THAT(norm->Forward(&batch, nullptr), is_named);
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(1, 2)));
  EXPECT_THAT(norm->Inverse(&batch, nullptr), is_named);
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(1, 2)));
}

TEST(ObservationNormTest, AnOutKeyOfADictionaryIsRefused) {
  auto norm = *ObservationNorm::Create(
      {.loc = {1}, .scale = {2}, .out_keys = {"next"}});
  const TensorDict before = *TedSpec().Random({3}, Rng(1, RngStream::kUser), 0);
  TensorDict batch = before;
  EXPECT_THAT(norm->ForwardSpec(TedSpec()), StatusIs(kInvalidArgument));
  EXPECT_THAT(norm->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("got a dictionary")));
  RILL_EXPECT_OK(batch.CheckEqual(before));
}

TEST(ObservationNormTest, RootsOfLanesThatGoOnAreNotMappedAgain) {
  auto norm = *ObservationNorm::Create({.loc = {0.5}, .scale = {0.5}});
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 2, norm.get()));
  const LeafSpec& spec = *environment.plan().spec.Find("observation");
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(environment.Reset({i == 0, 1}));
    RILL_ASSERT_OK(environment.Step());
    for (const char* key : {"observation", "next/observation"}) {
      RILL_EXPECT_OK(spec.CheckValues(key, {2}, *environment.step().Find(key)));
    }
  }
}

// --- InitStats ---------------------------------------------------------------

// Two passes over all values, in long double.
TEST(InitStatsTest, AreMeanAndDeviationOfAllBatches) {
  constexpr int64_t kBatches = 5;
  std::vector<Tensor> batches;
  const LeafSpec leaf = LeafSpec::Unbounded(DType::kFloat64, {3});
  for (uint64_t i = 0; i < kBatches; ++i) {
    batches.push_back(*leaf.Random({static_cast<int64_t>(i) * 2, 2},
                                   Rng(1, RngStream::kUser), i));
    // Far from 0, where a sum of squares would have no digits left.
    for (int64_t k = 0; k < batches.back().num_elements(); ++k) {
      batches.back().data<double>()[k] += 1e9 * static_cast<double>(k % 3);
    }
  }
  std::vector<double> means, deviations;
  for (int64_t e = 0; e < 3; ++e) {
    long double sum = 0, squares = 0, count = 0;
    for (const Tensor& batch : batches) {
      for (int64_t k = e; k < batch.num_elements(); k += 3) {
        sum += batch.data<double>()[k];
        ++count;
      }
    }
    for (const Tensor& batch : batches) {
      for (int64_t k = e; k < batch.num_elements(); k += 3) {
        const long double delta = batch.data<double>()[k] - sum / count;
        squares += delta * delta;
      }
    }
    means.push_back(static_cast<double>(sum / count));
    deviations.push_back(static_cast<double>(std::sqrt(squares / (count - 1))));
  }
  size_t at = 0;
  const auto next = [&]() -> absl::StatusOr<TensorDict> {
    TensorDict batch(batches[at].shape().Prefix(2));
    RILL_EXPECT_OK(batch.Set("observation", batches[at++]));
    return batch;
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto stats,
      ObservationNorm::InitStats(
          next, {.num_iter = kBatches, .standard_normal = true}));
  EXPECT_EQ(at, batches.size());
  EXPECT_THAT(stats.loc, Pointwise(DoubleNear(1e-6), means));
  EXPECT_THAT(stats.scale, Pointwise(DoubleNear(1e-6), deviations));
}

TEST(InitStatsTest, EitherFormulaMakesTheSameOfValues) {
  const auto batches = Again(*Tensor::From<float>({1, 10, 3, 30}, {2, 2}));
  for (const bool standard_normal : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto stats, ObservationNorm::InitStats(
                              batches, {.standard_normal = standard_normal}));
    auto norm = *ObservationNorm::Create({.loc = stats.loc,
                                          .scale = stats.scale,
                                          .standard_normal = standard_normal});
    TensorDict batch = *batches();
    RILL_ASSERT_OK(norm->Forward(&batch, nullptr));
    const float one = 1 / std::sqrt(2.0f);
    EXPECT_THAT(*batch.Flat<float>("observation"),
                Pointwise(::testing::FloatNear(1e-6f),
                          std::vector<float>{-one, -one, one, one}));
  }
}

TEST(InitStatsTest, ReducedDimensionsShareTheirNumbers) {
  // Two channels of [1, 2] pixels.
  const auto batches =
      Again(*Tensor::From<double>({1, 3, 10, 30, 1, 3, 10, 30}, {2, 2, 1, 2}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto stats,
      ObservationNorm::InitStats(
          batches, {.reduce_dim = {-1, -2}, .standard_normal = true}));
  EXPECT_THAT(stats.loc, ElementsAre(2, 2, 20, 20));
  EXPECT_EQ(stats.scale[0], stats.scale[1]);
  EXPECT_NEAR(stats.scale[0], std::sqrt(4.0 / 3), 1e-12);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto all,
      ObservationNorm::InitStats(
          batches, {.reduce_dim = {-1, -2, -3}, .standard_normal = true}));
  EXPECT_THAT(all.loc, Each(11));
}

TEST(InitStatsTest, ConstantsHaveTheLeastDeviation) {
  const auto batches = Again(*Tensor::From<float>({7, 7}, {2, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto stats, ObservationNorm::InitStats(
                            batches, {.standard_normal = true, .eps = 0.5}));
  EXPECT_THAT(stats.scale, ElementsAre(0.5));
  RILL_ASSERT_OK_AND_ASSIGN(const auto turned,
                            ObservationNorm::InitStats(batches, {.eps = 0.5}));
  EXPECT_THAT(turned.scale, ElementsAre(2));
  EXPECT_THAT(turned.loc, ElementsAre(-14));
}

TEST(InitStatsTest, NumbersThatAreNotFiniteAreRefused) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const auto refused = [](const Tensor& observation, const char* text) {
    EXPECT_THAT(ObservationNorm::InitStats(Again(observation), {}).status(),
                StatusIs(kInvalidArgument,
                         AllOf(HasSubstr("\"observation\""), HasSubstr(text))));
  };
  refused(*Tensor::From<float>({1, kNaN, 2, 3}, {2, 2}), "element 1");
  refused(*Tensor::From<float>({1, 2}, {1, 2}), "of 1 values");
  refused(*Tensor::Zeros(DType::kFloat32, {0, 2}), "of 0 values");
  refused(*Tensor::From<double>({1e308, -1e308}, {2, 1}), "inf");
}

TEST(InitStatsTest, BadArgumentsAreNamed) {
  const auto batches = Again(*Tensor::From<float>({1, 2}, {2, 1}));
  const auto refused = [&](const ObservationNorm::StatsOptions& options,
                           const char* text) {
    EXPECT_THAT(ObservationNorm::InitStats(batches, options).status(),
                StatusIs(kInvalidArgument, HasSubstr(text)));
  };
  refused({.num_iter = 0}, "num_iter: got 0");
  refused({.key = ""}, "key");
  refused({.reduce_dim = {0}}, "reduce_dim: got 0");
  refused({.reduce_dim = {-2}}, "reduce_dim: got -2");
  refused({.eps = 0}, "eps: got 0");
  EXPECT_THAT(ObservationNorm::InitStats(batches, {.key = "none"}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("InitStats")));
  EXPECT_THAT(ObservationNorm::InitStats(
                  Again(*Tensor::Zeros(DType::kInt64, {2, 1})), {})
                  .status(),
              StatusIs(kInvalidArgument, HasSubstr("int64[1]")));
  int64_t width = 0;
  EXPECT_THAT(
      ObservationNorm::InitStats(
          [&]() -> absl::StatusOr<TensorDict> {
            return BatchOf(*Tensor::Zeros(DType::kFloat32, {2, ++width}));
          },
          {.num_iter = 2})
          .status(),
      StatusIs(kInvalidArgument, AllOf(HasSubstr("[2]"), HasSubstr("[1]"))));
  EXPECT_THAT(ObservationNorm::InitStats(
                  []() -> absl::StatusOr<TensorDict> {
                    return absl::UnavailableError("broken");
                  },
                  {})
                  .status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("batch 0")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    Each, InABuffer<ObservationNorm>(kEach, WithVectorAction()));
INSTANTIATE_TRANSFORM_CONFORMANCE(StandardNormal,
                                  InABuffer<ObservationNorm>(kStandard,
                                                             TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    NormAndBack,
    InABuffer<ObservationNorm>({.loc = {0.5},
                                .scale = {3},
                                .in_keys = {"observation"},
                                .in_keys_inv = {"observation"},
                                .standard_normal = true},
                               TedSpec(), /*inverse_tolerance=*/1e-6));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Each, BesideAnEnvironment<ObservationNorm>(kEach, WithVectorAction()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    StandardNormal, BesideAnEnvironment<ObservationNorm>(kStandard, TedSpec()));

}  // namespace rill
