// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/vec_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/instruction_sets.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/statistics/vec_norm_kernels.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Steps whose observation has this dtype and shape.
TensorDictSpec SpecOf(DType dtype, const Shape& shape) {
  TensorDictSpec spec = TedSpec();
  for (const char* key : {"observation", "next/observation"}) {
    RILL_EXPECT_OK(spec.Set(key, LeafSpec::Unbounded(dtype, shape)));
  }
  return spec;
}

std::vector<double> Doubles(const Tensor& tensor) {
  const Tensor wide = *Cast(tensor, DType::kFloat64);
  return std::vector<double>(wide.data<double>(),
                             wide.data<double>() + wide.num_elements());
}

// Mean and deviation of column `c` of rows of `width`, in two plain passes.
struct Reference {
  double mean = 0;
  double deviation = 0;
};
Reference ColumnOf(const std::vector<double>& seen, size_t width, size_t c) {
  const double n = static_cast<double>(seen.size() / width);
  Reference result;
  for (size_t i = c; i < seen.size(); i += width) result.mean += seen[i] / n;
  double squares = 0;
  for (size_t i = c; i < seen.size(); i += width) {
    squares += (seen[i] - result.mean) * (seen[i] - result.mean);
  }
  result.deviation = std::sqrt(squares / n);
  return result;
}

void Append(const Tensor& tensor, std::vector<double>* seen) {
  const std::vector<double> values = Doubles(tensor);
  seen->insert(seen->end(), values.begin(), values.end());
}

void ExpectMoments(const TensorDict& state, absl::string_view key,
                   const std::vector<double>& seen, size_t width) {
  RILL_ASSERT_OK_AND_ASSIGN(const VecNormMoments moments,
                            ReadVecNorm(state, key));
  EXPECT_EQ(moments.count, static_cast<double>(seen.size() / width));
  for (size_t c = 0; c < width; ++c) {
    const Reference want = ColumnOf(seen, width, c);
    EXPECT_NEAR(moments.loc.data<double>()[c], want.mean, 1e-12) << c;
    EXPECT_NEAR(moments.scale.data<double>()[c], want.deviation, 1e-12) << c;
  }
}

TEST(VecNormTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto norm, VecNorm::Create({.in_keys = {"observation", "next/reward"},
                                  .shapes = {{4}, {1}}}));
  EXPECT_EQ(norm->name(), "VecNorm");
  RILL_EXPECT_OK(norm->PlanSteps(TedSpec()));
}

TEST(VecNormTest, StatisticsAreThoseOfAllRowsSeen) {
  const std::vector<std::pair<DType, Shape>> leaves = {
      {DType::kFloat32, {4}},    {DType::kFloat32, {1}},
      {DType::kFloat64, {3}},    {DType::kFloat32, {2, 35}},
      {DType::kFloat64, {1030}}, {DType::kFloat32, {}},
      {DType::kFloat32, {17}}};
  ForEachTarget([&leaves] {
    for (const auto& [dtype, shape] : leaves) {
      SCOPED_TRACE(shape.ToString());
      RILL_ASSERT_OK_AND_ASSIGN(
          auto norm, VecNorm::Create({.shapes = {shape}, .decay = 1}));
      RILL_ASSERT_OK_AND_ASSIGN(
          auto environment,
          FakeEnvironment::Create(SpecOf(dtype, shape), 11, norm.get()));
      std::vector<double> seen;
      const auto width = static_cast<size_t>(shape.num_elements());
      RILL_ASSERT_OK(environment.Reset(std::vector<uint8_t>(11, 1)));
      Append(*environment.environment_step().Find("observation"), &seen);
      for (int i = 0; i < 3; ++i) {
        RILL_ASSERT_OK(environment.Step());
        Append(*environment.environment_step().Find("next/observation"), &seen);
      }
      ExpectMoments(environment.state(), "observation", seen, width);
      const std::vector<double> raw =
          Doubles(*environment.environment_step().Find("next/observation"));
      const std::vector<double> made =
          Doubles(*environment.step().Find("next/observation"));
      for (size_t i = 0; i < raw.size(); ++i) {
        const Reference want = ColumnOf(seen, width, i % width);
        EXPECT_NEAR(made[i], (raw[i] - want.mean) / want.deviation, 1e-5);
      }
    }
  });
}

// Rows of four stay in registers, rows behind a mask do not. Both leave old
// statistics whole or write over them.
TEST(VecNormTest, RowsOfFourHaveTheSameBitsOnEveryWay) {
  const Rng rng(5, RngStream::kUser);
  for (int64_t rows = 1; rows <= 64; ++rows) {
    SCOPED_TRACE(rows);
    std::vector<float> in(static_cast<size_t>(4 * rows));
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<float>(
          rng.UniformDouble(0, static_cast<uint32_t>(i)) - 0.5);
    }
    // Means near 0 that additions round, so that their order shows.
    const std::vector<double> before = {
        10, 1e-3 / 3, 1e-3 / 7, 1e-4, 1e-5 / 3, 1 / 3.0, 2 / 7.0, 0.5, 1e-9};
    const std::vector<uint8_t> mask(static_cast<size_t>(rows), 1);
    std::vector<size_t> lanes(static_cast<size_t>(rows));
    std::iota(lanes.begin(), lanes.end(), 0);
    ForEachTarget([&] {
      enum { kAll, kMasked, kListed };
      std::vector<double> first;
      std::vector<float> first_out;
      for (const auto way : {kAll, kMasked, kListed}) {
        for (const bool is_in_place : {false, true}) {
          std::vector<double> after = before;
          std::vector<float> out = in;
          EXPECT_TRUE(transforms_internal::NormaliseRows(
              {.n = 4,
               .rows = rows,
               .mask = way == kMasked ? mask : absl::Span<const uint8_t>(),
               .lanes = way == kListed ? lanes.data() : nullptr,
               .decay = 0.99,
               .eps = 1e-4,
               .before = is_in_place ? after.data() : before.data(),
               .after = after.data()},
              out.data(), out.data()));
          EXPECT_NE(after, before);
          if (first.empty()) first = after, first_out = out;
          EXPECT_EQ(after, first);
          EXPECT_EQ(out, first_out);
        }
      }
    });
  }
}

TEST(VecNormTest, AResetCountsTheMaskedLanesAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{4}}, .decay = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 5, norm.get()));
  RILL_ASSERT_OK(environment.Reset({0, 1, 1, 0, 1}));
  const std::vector<double> all =
      Doubles(*environment.environment_step().Find("observation"));
  std::vector<double> seen(all.begin() + 4, all.begin() + 12);
  seen.insert(seen.end(), all.begin() + 16, all.end());
  ExpectMoments(environment.state(), "observation", seen, 4);
}

TEST(VecNormTest, RewardsHaveStatisticsOfTheirOwn) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.in_keys = {"next/reward"},
                                             .shapes = {{1}},
                                             .out_keys = {"next/reward_norm"},
                                             .decay = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 2, norm.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  TensorDict made({2});
  RILL_ASSERT_OK(made.Set("next/reward", *Tensor::From<float>({1, 3}, {2, 1})));
  RILL_ASSERT_OK(environment.Step(made));
  EXPECT_THAT(environment.step().Flat<float>("next/reward_norm"),
              IsOkAndHolds(ElementsAre(-1, 1)));
  EXPECT_THAT(environment.step().Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(1, 3)));
}

TEST(VecNormTest, DecayForgetsWhatWasBefore) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto norm,
      VecNorm::Create(
          {.in_keys = {"next/reward"}, .shapes = {{1}}, .decay = .5}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 2, norm.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  for (const float reward : {8.0f, 2.0f}) {
    TensorDict made({2});
    RILL_ASSERT_OK(made.Set("next/reward",
                            *Tensor::From<float>({reward, reward}, {2, 1})));
    RILL_ASSERT_OK(environment.Step(made));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const VecNormMoments moments,
                            ReadVecNorm(environment.state(), "next/reward"));
  EXPECT_EQ(moments.count, 3);
  EXPECT_DOUBLE_EQ(moments.loc.data<double>()[0], (8 + 2 * 2) / 3.0);
}

TEST(VecNormTest, AFrozenOneUsesItsStateAndLearnsNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{4}}, .frozen = true}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 2, norm.get()));
  // Nothing known: leaves stay.
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  EXPECT_EQ(Doubles(*environment.step().Find("observation")),
            Doubles(*environment.environment_step().Find("observation")));
  // T7: mean 1, deviation 2.
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor learned,
      Tensor::From<double>({10, 1, 1, 1, 1, 40, 40, 40, 40}, {9}));
  RILL_ASSERT_OK(environment.state().Set("observation", learned));
  TensorDict made({2});
  RILL_ASSERT_OK(
      made.Set("next/observation",
               *Tensor::From<float>({1, 2, 3, 5, -1, 1, 1, 1}, {2, 4})));
  RILL_ASSERT_OK(environment.Step(made));
  EXPECT_THAT(environment.step().Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(0, .5, 1, 2, -1, 0, 0, 0)));
  EXPECT_EQ(environment.state().Find("observation")->raw_data(),
            learned.raw_data());
}

TEST(VecNormTest, ConstantLeavesAreDividedByEps) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto norm,
      VecNorm::Create(
          {.in_keys = {"next/reward"}, .shapes = {{1}}, .eps = .25}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 2, norm.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  TensorDict made({2});
  RILL_ASSERT_OK(
      made.Set("next/reward", *Tensor::From<float>({3, 3.125f}, {2, 1})));
  RILL_ASSERT_OK(environment.Step(made));
  EXPECT_THAT(environment.step().Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(-.25, .25)));
}

TEST(VecNormTest, ValuesThatAreNotFiniteAreRefusedAndTheStateStays) {
  for (const double decay : {1.0, 0.9999}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto norm, VecNorm::Create({.shapes = {{4}}, .decay = decay}));
    RILL_ASSERT_OK_AND_ASSIGN(
        auto environment, FakeEnvironment::Create(TedSpec(), 1, norm.get()));
    RILL_ASSERT_OK(environment.Reset({1}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before,
                              environment.state().Clone());
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
      TensorDict made({1});
      RILL_ASSERT_OK(made.Set("next/observation",
                              *Tensor::From<float>({0, 0, bad, 0}, {1, 4})));
      EXPECT_THAT(
          environment.Step(made),
          StatusIs(kInvalidArgument,
                   AllOf(HasSubstr("next/observation"), HasSubstr("not finite"),
                         HasSubstr("in lane 0, element 2"))));
      RILL_EXPECT_OK(environment.state().CheckEqual(before));
    }
  }
}

// float32 never gets there.
TEST(VecNormTest, DoublesBeyondTheExactSumsAreRefusedAndTheStateStays) {
  constexpr int64_t kLanes = 5;
  constexpr double kMost = 0x1p493;
  const TensorDictSpec spec = SpecOf(DType::kFloat64, {3});
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{3}}, .decay = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(spec, kLanes, norm.get()));
  const auto step = [&](size_t place, double value) {
    std::vector<double> values(kLanes * 3, 0);
    values[place] = value;
    TensorDict made({kLanes});
    RILL_EXPECT_OK(made.Set("next/observation",
                            *Tensor::From<double>(values, {kLanes, 3})));
    return environment.Step(made);
  };
  ForEachTarget([&] {
    RILL_ASSERT_OK(environment.Reset(std::vector<uint8_t>(kLanes, 1)));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before,
                              environment.state().Clone());
    for (size_t place = 0; place < kLanes * 3; ++place) {
      for (const double value : {2 * kMost, -2 * kMost}) {
        EXPECT_THAT(
            step(place, value),
            StatusIs(kInvalidArgument,
                     AllOf(HasSubstr("next/observation"), HasSubstr("beyond"),
                           HasSubstr(absl::StrCat("in lane ", place / 3,
                                                  ", element ", place % 3)))));
        RILL_EXPECT_OK(environment.state().CheckEqual(before));
      }
    }
  });
  RILL_ASSERT_OK(environment.Reset(std::vector<uint8_t>(kLanes, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const VecNormMoments few,
                            ReadVecNorm(environment.state(), "observation"));
  RILL_ASSERT_OK(step(7, -kMost));
  RILL_ASSERT_OK_AND_ASSIGN(const VecNormMoments moments,
                            ReadVecNorm(environment.state(), "observation"));
  EXPECT_EQ(moments.count, few.count + kLanes);
  EXPECT_DOUBLE_EQ(moments.loc.data<double>()[1], -kMost / moments.count);
}

// The tensors of old states serve again, but for those that somebody holds.
TEST(VecNormTest, StatesTakeTurnsInAFewTensors) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm, VecNorm::Create({.shapes = {{4}}}));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(TedSpec(), 2, norm.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  const auto buffer = [&environment] {
    return environment.state().Find("observation")->buffer();
  };
  const std::weak_ptr<Buffer> first = buffer();
  RILL_ASSERT_OK(environment.Step());
  EXPECT_NE(buffer(), first.lock());
  EXPECT_FALSE(first.expired());
  RILL_ASSERT_OK(environment.Step());
  EXPECT_EQ(buffer(), first.lock());
  const TensorDict held = environment.state();
  RILL_ASSERT_OK(environment.Step());
  RILL_ASSERT_OK(environment.Step());
  EXPECT_NE(buffer(), first.lock());
}

TEST(VecNormTest, StatesOfManyLeavesTakeTurnsToo) {
  VecNorm::Options options = {.in_keys = {}};
  TensorDictSpec spec = TedSpec();
  for (int i = 0; i < 20; ++i) {
    const std::string key = absl::StrCat("next/x", i);
    RILL_ASSERT_OK(spec.Set(key, LeafSpec::Unbounded(DType::kFloat32, {1})));
    RILL_ASSERT_OK(spec.Set(absl::StrCat("x", i),
                            LeafSpec::Unbounded(DType::kFloat32, {1})));
    options.in_keys.push_back(key);
    options.shapes.push_back({1});
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto norm, VecNorm::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(spec, 2, norm.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  RILL_ASSERT_OK(environment.Step());
  std::vector<std::weak_ptr<Buffer>> first;
  for (const std::string& key : options.in_keys) {
    first.push_back(environment.state().Find(key)->buffer());
  }
  RILL_ASSERT_OK(environment.Step());
  for (const auto& buffer : first) EXPECT_FALSE(buffer.expired());
}

TEST(VecNormTest, StatesOfOtherLayoutsAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm, VecNorm::Create({.shapes = {{4}}}));
  for (const Tensor& foreign : {*Tensor::Zeros(DType::kFloat32, {9}),
                                *Tensor::Zeros(DType::kFloat64, {8})}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto environment, FakeEnvironment::Create(TedSpec(), 2, norm.get()));
    RILL_ASSERT_OK(environment.state().Set("observation", foreign));
    EXPECT_THAT(environment.Reset({1, 1}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("\"observation\": want")));
  }
}

// Some rows of `width` numbers in a call.
absl::Status Learn(const StepTransform& norm, absl::Span<double> rows,
                   TensorDict* state, int64_t width = 1) {
  const auto count = static_cast<int64_t>(rows.size()) / width;
  const BoundLeaf leaf = {.data = reinterpret_cast<std::byte*>(rows.data()),
                          .width = width * static_cast<int64_t>(sizeof(double)),
                          .dtype = DType::kFloat64,
                          .rows = count,
                          .shape = {width}};
  return norm.OnStep({leaf, leaf}, state);
}

// Rows of four have a kernel of their own.
TEST(VecNormTest, StatisticsThatNoRowsHaveAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> bad = {
      {1, nan, 1}, {1, inf, 1}, {nan, 0, 1}, {-5, 0, 1},
      {1, 0, -1},  {1, 0, nan}, {inf, 0, 1}, {0, nan, 0}};
  for (const int64_t width : {1, 4, 7}) {
    for (const bool is_frozen : {false, true}) {
      RILL_ASSERT_OK_AND_ASSIGN(
          auto norm,
          VecNorm::Create({.shapes = {{width}}, .frozen = is_frozen}));
      for (const std::vector<double>& numbers : bad) {
        // The last element has them.
        const auto n = static_cast<size_t>(width);
        std::vector<double> statistics(1 + 2 * n);
        statistics[0] = numbers[0];
        statistics[n] = numbers[1];
        statistics[2 * n] = numbers[2];
        TensorDict state;
        RILL_ASSERT_OK(state.Set(
            "observation", *Tensor::From<double>(statistics, {1 + 2 * width})));
        std::vector<double> rows(2 * n, 1);
        EXPECT_THAT(Learn(*norm, absl::MakeSpan(rows), &state, width),
                    StatusIs(absl::StatusCode::kFailedPrecondition,
                             AllOf(HasSubstr("state: \"observation\""),
                                   HasSubstr("that no rows have"))));
        EXPECT_THAT(rows, ::testing::Each(1));
        EXPECT_THAT(ReadVecNorm(state, "observation"),
                    StatusIs(kInvalidArgument, HasSubstr("that no rows have")));
        EXPECT_THAT(MergeVecNorm(state, state),
                    StatusIs(kInvalidArgument, HasSubstr("that no rows have")));
      }
    }
  }
}

// --- Merging -----------------------------------------------------------------

// The state after these steps of these lanes, and the rows that it has seen.
TensorDict Learned(const StepTransform& norm, int64_t lanes, int64_t steps,
                   std::vector<double>* seen) {
  auto environment = FakeEnvironment::Create(TedSpec(), lanes, &norm);
  RILL_EXPECT_OK(environment);
  for (int64_t i = 0; i < steps; ++i) {
    RILL_EXPECT_OK(environment->Step());
    Append(*environment->environment_step().Find("next/observation"), seen);
  }
  return environment->state();
}

TEST(MergeVecNormTest, MergedStatesAreThoseOfAllRowsInAnyGrouping) {
  for (const double decay : {1.0, 0.9}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto norm, VecNorm::Create({.shapes = {{4}}, .decay = decay}));
    std::vector<double> seen;
    const TensorDict a = Learned(*norm, 3, 1, &seen);
    const TensorDict b = Learned(*norm, 1, 2, &seen);
    const TensorDict c = Learned(*norm, 16, 5, &seen);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict ab, MergeVecNorm(a, b));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict left, MergeVecNorm(ab, c));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict bc, MergeVecNorm(b, c));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict right, MergeVecNorm(a, bc));
    EXPECT_THAT(MergeVecNorm(b, a),
                IsOkAndHolds(::testing::Truly([&ab](const TensorDict& ba) {
                  return ba.CheckEqual(ab).ok();
                })));
    if (decay == 1) {
      ExpectMoments(left, "observation", seen, 4);
      RILL_EXPECT_OK(left.CheckEqual(right));
    } else {
      RILL_EXPECT_OK(left.CheckClose(right, 1e-12, 1e-12));
    }
  }
}

// Mean and deviation of the values, in two passes and 64 bits of precision.
std::pair<long double, long double> MomentsOf(
    const std::vector<double>& values) {
  const auto n = static_cast<long double>(values.size());
  long double sum = 0;
  for (const double value : values) sum += value;
  long double squares = 0;
  for (const double value : values) {
    squares += (value - sum / n) * (value - sum / n);
  }
  return {sum / n, std::sqrt(squares / n)};
}

// A tensor that nobody else holds is written in place, to the same numbers.
class OwnStateTest : public testing::TestWithParam<double> {};

INSTANTIATE_TEST_SUITE_P(Decays, OwnStateTest, testing::Values(1, 0.9999));

TEST_P(OwnStateTest, StaysInItsTensor) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto norm, VecNorm::Create({.shapes = {{1}}, .decay = GetParam()}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict own, norm->InitialState(1));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict shared, norm->InitialState(1));
  const void* const place = own.Find("observation")->raw_data();
  for (const double first : {3., -1., 7.}) {
    std::vector<double> rows = {first, 2, 5};
    RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(rows), &own));
    rows = {first, 2, 5};
    const TensorDict before = shared;
    RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(rows), &shared));
    EXPECT_NE(shared.Find("observation")->raw_data(),
              before.Find("observation")->raw_data());
    RILL_EXPECT_OK(own.CheckEqual(shared));
    EXPECT_EQ(own.Find("observation")->raw_data(), place);
  }
  std::vector<double> bad = {1, std::numeric_limits<double>::infinity()};
  EXPECT_FALSE(Learn(*norm, absl::MakeSpan(bad), &own).ok());
  RILL_EXPECT_OK(own.CheckEqual(shared));
  EXPECT_EQ(own.Find("observation")->raw_data(), place);
}

// Lanes, calls and states part the rows; order and grouping of merges are
// random.
TEST(MergeVecNormTest, AnyPartsGiveOneResultToTheBit) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{1}}, .decay = 1}));
  std::mt19937_64 random(7);
  const auto below = [&random](size_t n) {
    return static_cast<size_t>(random() % n);
  };
  for (const auto& [center, spread] : std::vector<std::pair<double, double>>{
           {0, 1}, {1e6, 1e-3}, {-1e-8, 1e-8}, {3, 0}, {1e9, 1e8}}) {
    std::vector<double> values;
    std::uniform_real_distribution<double> noise(-spread, spread);
    for (int i = 0; i < 2000; ++i) values.push_back(center + noise(random));
    const auto [mean, deviation] = MomentsOf(values);
    const double largest = std::abs(*std::max_element(
        values.begin(), values.end(),
        [](double a, double b) { return std::abs(a) < std::abs(b); }));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict whole, norm->InitialState(1));
    std::vector<double> all = values;
    RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(all), &whole));
    RILL_ASSERT_OK_AND_ASSIGN(const VecNormMoments moments,
                              ReadVecNorm(whole, "observation"));
    EXPECT_EQ(moments.count, static_cast<double>(values.size()));
    EXPECT_LE(std::abs(moments.loc.data<double>()[0] - mean),
              0x1p-50 * largest);
    EXPECT_LE(std::abs(moments.scale.data<double>()[0] - deviation),
              0x1p-50 * largest);
    for (int trial = 0; trial < 20; ++trial) {
      std::shuffle(values.begin(), values.end(), random);
      std::vector<TensorDict> states;
      const size_t most_rows = 1 + below(300);
      for (size_t begin = 0; begin < values.size();) {
        if (states.empty() || below(10) == 0) {
          states.push_back(*norm->InitialState(1));
        }
        const size_t count =
            std::min(1 + below(most_rows), values.size() - begin);
        std::vector<double> rows(&values[begin], &values[begin] + count);
        RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(rows), &states.back()));
        begin += count;
      }
      while (states.size() > 1) {
        std::swap(states.back(), states[below(states.size())]);
        const TensorDict last = std::move(states.back());
        states.pop_back();
        TensorDict& other = states[below(states.size())];
        RILL_ASSERT_OK_AND_ASSIGN(other, MergeVecNorm(other, last));
      }
      RILL_EXPECT_OK(states[0].CheckEqual(whole)) << center;
    }
  }
}

// One environment of four lanes makes the same of a step as four of one lane,
// once their states are merged.
TEST(MergeVecNormTest, LanesOfOneEnvironmentOrOfSeveralNormaliseAlike) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{1}}, .decay = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto frozen,
      VecNorm::Create({.shapes = {{1}}, .decay = 1, .frozen = true}));
  std::vector<double> together = {0.1, 3, -7, 1e-3};
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict merged, norm->InitialState(1));
  for (double row : together) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict own, norm->InitialState(1));
    RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(&row, 1), &own));
    RILL_ASSERT_OK_AND_ASSIGN(merged, MergeVecNorm(own, merged));
  }
  std::vector<double> apart = together;
  RILL_ASSERT_OK(Learn(*frozen, absl::MakeSpan(apart), &merged));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, norm->InitialState(4));
  RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(together), &state));
  EXPECT_EQ(apart, together);
  RILL_EXPECT_OK(state.CheckEqual(merged));
}

// Workers go on from one state, and what they have merged is handed out again.
TEST(MergeVecNormTest, AStartThatAllHaveInCommonCountsOnce) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{1}}, .decay = 1}));
  std::mt19937_64 random(3);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict whole, norm->InitialState(1));
  TensorDict start = whole;
  for (int round = 0; round < 20; ++round) {
    std::vector<TensorDict> states(1 + random() % 5);
    for (TensorDict& state : states) {
      RILL_ASSERT_OK_AND_ASSIGN(state, start.Clone());
      // Windows move up, and one state may see nothing.
      std::vector<double> rows(random() % 4);
      for (double& row : rows) {
        row = std::ldexp(static_cast<double>(random() % 1000) / 7.0,
                         static_cast<int>(random() % 120) - 60 + 4 * round);
      }
      if (rows.empty()) continue;
      std::vector<double> copy = rows;
      RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(rows), &state));
      RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(copy), &whole));
    }
    RILL_ASSERT_OK_AND_ASSIGN(start, MergeVecNormSince(start, states));
    RILL_ASSERT_OK(start.CheckEqual(whole)) << round;
  }
}

TEST(MergeVecNormTest, AStateThatDidNotBeginThereIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{4}}, .decay = 1}));
  std::vector<double> seen;
  const TensorDict few = Learned(*norm, 3, 1, &seen);
  const TensorDict many = Learned(*norm, 3, 2, &seen);
  RILL_EXPECT_OK(VecNormSince(many, few));
  EXPECT_THAT(VecNormSince(few, many),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("want the one to have begun with the other")));
}

// Merged and handed out in each round, the weight would else grow without end.
TEST(MergeVecNormTest, WithADecayHandingOutAddsNoWeight) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{1}}, .decay = 0.9}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict start, norm->InitialState(1));
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<TensorDict> states(4);
    for (TensorDict& state : states) {
      RILL_ASSERT_OK_AND_ASSIGN(state, start.Clone());
      std::vector<double> row = {static_cast<double>(random() % 1000)};
      RILL_ASSERT_OK(Learn(*norm, absl::MakeSpan(row), &state));
    }
    RILL_ASSERT_OK_AND_ASSIGN(start, MergeVecNormSince(start, states));
    const std::vector<TensorDict> frozen(3, start);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same,
                              MergeVecNormSince(start, frozen));
    RILL_ASSERT_OK(same.CheckEqual(start));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const VecNormMoments moments,
                            ReadVecNorm(start, "observation"));
  EXPECT_NEAR(moments.count, 10, 0.3);  // 1 / (1 - decay)
  EXPECT_NEAR(moments.loc.data<double>()[0], 500, 150);
  EXPECT_NEAR(moments.scale.data<double>()[0], 289, 100);
}

TEST(MergeVecNormTest, SumsOfTooManyRowsAreRefusedAndStay) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm,
                            VecNorm::Create({.shapes = {{1}}, .decay = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, norm->InitialState(1));
  state.Find("observation")->data<int64_t>()[0] = (int64_t{1} << 36) - 1;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, state.Clone());
  std::vector<double> rows = {1, 2};
  EXPECT_THAT(Learn(*norm, absl::MakeSpan(rows), &state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("got 2 rows after 68719476735")));
  RILL_EXPECT_OK(state.CheckEqual(before));
  EXPECT_THAT(MergeVecNorm(state, state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("want at most 68719476736")));
  // No rows give a window beyond the last.
  state.Find("observation")->data<int64_t>()[1] = 36;
  EXPECT_THAT(Learn(*norm, absl::MakeSpan(rows), &state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("numbers that no rows have")));
  EXPECT_THAT(MergeVecNorm(before, state),
              StatusIs(kInvalidArgument, HasSubstr("that no rows have")));
}

TEST(MergeVecNormTest, AStateThatHasSeenNothingAddsNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm, VecNorm::Create({.shapes = {{4}}}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict none, norm->InitialState(3));
  for (int64_t steps = 1; steps < 10; ++steps) {
    std::vector<double> seen;
    const TensorDict a = Learned(*norm, 3, steps, &seen);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict right, MergeVecNorm(a, none));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict left, MergeVecNorm(none, a));
    RILL_EXPECT_OK(right.CheckEqual(a));
    RILL_EXPECT_OK(left.CheckEqual(a));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict nothing, MergeVecNorm(none, none));
  RILL_EXPECT_OK(nothing.CheckEqual(none));
}

TEST(MergeVecNormTest, StatesOfOthersAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto norm, VecNorm::Create({.shapes = {{4}}}));
  RILL_ASSERT_OK_AND_ASSIGN(auto other, VecNorm::Create({.shapes = {{5}}}));
  EXPECT_THAT(MergeVecNorm(*norm->InitialState(1), *other->InitialState(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("observation")));
  TensorDict foreign;
  RILL_ASSERT_OK(foreign.Set("x", *Tensor::Zeros(DType::kFloat32, {3})));
  EXPECT_THAT(MergeVecNorm(foreign, foreign),
              StatusIs(kInvalidArgument, HasSubstr("\"x\"")));
  EXPECT_THAT(ReadVecNorm(foreign, "y"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("y")));
}

// --- Options -----------------------------------------------------------------

TEST(VecNormTest, BadOptionsAndStepsAreNamed) {
  EXPECT_THAT(VecNorm::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("shapes")));
  EXPECT_THAT(VecNorm::Create({.shapes = {{4}}, .out_keys = {"next/x"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"next/x\"")));
  EXPECT_THAT(VecNorm::Create({.shapes = {{INT64_MAX, INT64_MAX}}}),
              StatusIs(kInvalidArgument, HasSubstr("2^40")));
  EXPECT_THAT(VecNorm::Create({.shapes = {{4}}, .decay = 0}),
              StatusIs(kInvalidArgument, HasSubstr("decay: got 0")));
  EXPECT_THAT(VecNorm::Create({.shapes = {{4}}, .eps = 0}),
              StatusIs(kInvalidArgument, HasSubstr("eps: got 0")));
  EXPECT_THAT(VecNorm::Create({.in_keys = {"a", "a"}, .shapes = {{4}, {4}}}),
              StatusIs(kInvalidArgument, HasSubstr("\"a\"")));
  EXPECT_THAT(
      VecNorm::Create({.in_keys = {"a", "next/a"}, .shapes = {{4}, {4}}}),
      StatusIs(kInvalidArgument, HasSubstr("\"next/a\"")));
  EXPECT_THAT(VecNorm::Create({.in_keys = {"a", "next/b"},
                               .shapes = {{4}, {4}},
                               .out_keys = {"c", "next/c"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"next/c\"")));
  RILL_ASSERT_OK_AND_ASSIGN(auto norm, VecNorm::Create({.shapes = {{5}}}));
  EXPECT_THAT(norm->PlanSteps(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("float64[5]")));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto flags, VecNorm::Create({.in_keys = {"done"}, .shapes = {{1}}}));
  EXPECT_THAT(flags->PlanSteps(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("\"done\"")));
}

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    InPlace, BesideAnEnvironment<VecNorm>({.shapes = {{4}}}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Exact,
    BesideAnEnvironment<VecNorm>({.shapes = {{4}}, .decay = 1}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    BesideTheLeaf,
    BesideAnEnvironment<VecNorm>({.in_keys = {"observation", "next/reward"},
                                  .shapes = {{4}, {1}},
                                  .out_keys = {"normal", "next/normal_reward"}},
                                 TedSpec()));

}  // namespace
}  // namespace rill
