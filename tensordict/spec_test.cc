// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/spec.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_tensors.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr double kInf = std::numeric_limits<double>::infinity();
// A correct generator fails a chi-square test of this file once in 1e9 seeds.
constexpr double kFalseAlarm = 1e-9;

template <typename T>
absl::Span<T> Elements(const Tensor& tensor) {
  return *tensor.Flat<T>();
}

TensorDictSpec StepSpec() {
  TensorDictSpec spec;
  spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4}))
      .IgnoreError();
  spec.Set("action", LeafSpec::Categorical(2)).IgnoreError();
  spec.Set("next/reward", LeafSpec::Bounded(DType::kFloat32, {1}, -1, 1))
      .IgnoreError();
  spec.Set("next/done", LeafSpec::Binary({1})).IgnoreError();
  return spec;
}

TEST(LeafSpecTest, TextShowsLayoutAndDomain) {
  EXPECT_EQ(LeafSpec::Unbounded(DType::kFloat32, {4}).ToString(), "float32[4]");
  EXPECT_EQ(LeafSpec::Bounded(DType::kFloat32, {4}, -1, 1).ToString(),
            "float32[4] in [-1, 1]");
  EXPECT_EQ(LeafSpec::Categorical(5).ToString(), "int64[] in {0, ..., 4}");
  EXPECT_EQ(LeafSpec::Binary({1}).ToString(), "bool[1] in {0, 1}");
  EXPECT_EQ(
      StepSpec().ToString(),
      "{observation: float32[4], action: int64[] in {0, ..., 1}, "
      "next/reward: float32[1] in [-1, 1], next/done: bool[1] in {0, 1}}");
}

TEST(LeafSpecTest, LayoutNamesBothSides) {
  const LeafSpec spec = LeafSpec::Unbounded(DType::kFloat32, {4});
  RILL_EXPECT_OK(spec.CheckLayout("obs", {2, 3}, Iota<float>({2, 3, 4})));
  EXPECT_THAT(
      spec.CheckLayout("obs", {2}, Iota<float>({2, 3, 4})),
      StatusIs(kInvalid, HasSubstr("\"obs\": got float32[2, 3, 4], want "
                                   "float32[2, 4]")));
  EXPECT_THAT(spec.CheckLayout("obs", {2}, Iota<double>({2, 4})),
              StatusIs(kInvalid, HasSubstr("float64[2, 4]")));
  EXPECT_THAT(spec.CheckLayout("obs", {2}, Iota<float>({3, 4})),
              StatusIs(kInvalid));
}

TEST(LeafSpecTest, ValuesNameTheFirstOutside) {
  const LeafSpec spec = LeafSpec::Bounded(DType::kFloat32, {2}, -1, 1);
  RILL_EXPECT_OK(
      spec.CheckValues("r", {1}, MakeTensor<float>({-1, 1}, {1, 2})));
  EXPECT_THAT(
      spec.CheckValues("r", {2}, MakeTensor<float>({0, 1, 1.5, 2}, {2, 2})),
      StatusIs(kInvalid, AllOf(HasSubstr("element 2"), HasSubstr("got 1.5"),
                               HasSubstr("[-1, 1]"))));
  EXPECT_THAT(spec.CheckValues("r", {1}, MakeTensor<float>({NAN, 0}, {1, 2})),
              StatusIs(kInvalid, HasSubstr("got nan")));
}

TEST(LeafSpecTest, BoundsCountAsRoundedToTheDType) {
  const LeafSpec spec = LeafSpec::Bounded(DType::kFloat32, {}, 0, 0.1);
  RILL_EXPECT_OK(spec.CheckValues("x", {}, MakeTensor<float>({0.1f}, {})));
  EXPECT_THAT(spec.CheckValues(
                  "x", {}, MakeTensor<float>({std::nextafter(0.1f, 1.0f)}, {})),
              StatusIs(kInvalid));
}

TEST(LeafSpecTest, CategoriesAndBitsAreWholeNumbers) {
  const LeafSpec three = LeafSpec::Categorical(3);
  RILL_EXPECT_OK(three.CheckValues("a", {3}, Iota<int64_t>({3})));
  EXPECT_THAT(
      three.CheckValues("a", {4}, Iota<int64_t>({4})),
      StatusIs(kInvalid, HasSubstr("got 3, want a value in {0, ..., 2}")));
  EXPECT_THAT(three.CheckValues("a", {1}, MakeTensor<int64_t>({-1}, {1})),
              StatusIs(kInvalid));
  const LeafSpec real = LeafSpec::Categorical(3, DType::kFloat32);
  EXPECT_THAT(real.CheckValues("a", {1}, MakeTensor<float>({0.5}, {1})),
              StatusIs(kInvalid));
  const LeafSpec bits = LeafSpec::Binary({}, DType::kUInt8);
  EXPECT_THAT(bits.CheckValues("b", {3}, Iota<uint8_t>({3})),
              StatusIs(kInvalid, HasSubstr("element 2")));
}

TEST(LeafSpecTest, ValuesOfStridedAndDeviceTensorsAreRead) {
  const LeafSpec spec = LeafSpec::Bounded(DType::kInt32, {2}, 0, 4);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned,
                            Iota<int32_t>({2, 3}).Permute({1, 0}));
  EXPECT_THAT(spec.CheckValues("x", {3}, turned),
              StatusIs(kInvalid, HasSubstr("element 5")));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, turned.To(Device::Fake()));
  EXPECT_THAT(spec.CheckValues("x", {3}, there),
              StatusIs(kInvalid, HasSubstr("element 5")));
}

TEST(LeafSpecTest, BadDomainsAreRefused) {
  const auto refused = [](const LeafSpec& spec) {
    TensorDictSpec dict;
    EXPECT_THAT(dict.Set("x", spec), StatusIs(kInvalid, HasSubstr("\"x\"")))
        << spec.ToString();
    EXPECT_TRUE(dict.empty());
    EXPECT_THAT(spec.Random({1}, Rng(1), 0), StatusIs(kInvalid));
  };
  refused(LeafSpec::Bounded(DType::kFloat32, {}, 1, -1));
  refused(LeafSpec::Bounded(DType::kFloat32, {}, NAN, 1));
  refused(LeafSpec::Bounded(DType::kInt32, {}, 0.2, 0.8));  // No whole number.
  refused(LeafSpec::Bounded(DType::kUInt8, {}, -5, -1));
  refused(LeafSpec::Bounded(DType::kUInt32, {}, 0, 1));  // No arithmetic.
  refused(LeafSpec::Categorical(0));
  refused(LeafSpec::Categorical(257, DType::kUInt8));
  refused(LeafSpec::Binary({}, DType::kComplex64));
  RILL_EXPECT_OK(LeafSpec::Categorical(256, DType::kUInt8).CheckDomain());
  RILL_EXPECT_OK(LeafSpec::Unbounded(DType::kComplex64, {}).CheckDomain());
}

TEST(LeafSpecTest, FullShapeKeepsTheLimits) {
  const LeafSpec spec = LeafSpec::Unbounded(DType::kFloat32, {2, 3});
  EXPECT_THAT(spec.FullShape({4}), IsOkAndHolds(Shape({4, 2, 3})));
  EXPECT_THAT(spec.FullShape({1, 1, 1, 1, 1, 1, 1}),
              StatusIs(kInvalid, HasSubstr("got 9, want at most 8")));
  EXPECT_THAT(spec.FullShape({int64_t{1} << 62}), StatusIs(kInvalid));
}

// --- Random members ---------------------------------------------------------

std::vector<int64_t> CountInts(const Tensor& tensor, int64_t buckets) {
  std::vector<int64_t> counts(static_cast<size_t>(buckets));
  for (const int64_t value : Elements<int64_t>(tensor)) {
    ++counts.at(static_cast<size_t>(value));
  }
  return counts;
}

TEST(LeafSpecRandomTest, CategoriesAreUniform) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor t, LeafSpec::Categorical(7).Random({70000}, Rng(1), 0));
  EXPECT_THAT(CountInts(t, 7),
              DistributedAs(UniformProbabilities(7), kFalseAlarm));
}

TEST(LeafSpecRandomTest, BoundedRealsAreUniform) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor t,
                            LeafSpec::Bounded(DType::kFloat32, {}, -3, 5)
                                .Random({100000}, Rng(2), 0));
  std::vector<int64_t> counts(16);
  for (const float value : Elements<float>(t)) {
    ASSERT_THAT(value, AllOf(Ge(-3), Le(5)));
    ++counts.at(std::min<size_t>(static_cast<size_t>((value + 3) * 2), 15));
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(16), kFalseAlarm));
}

TEST(LeafSpecRandomTest, UnboundedRealsAreStandardNormal) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor t,
      LeafSpec::Unbounded(DType::kFloat64, {}).Random({100000}, Rng(3), 0));
  // Ten buckets of equal probability, through the distribution function.
  std::vector<int64_t> counts(10);
  for (const double value : Elements<double>(t)) {
    const double p = 0.5 * std::erfc(-value / std::sqrt(2.0));
    ++counts.at(std::min<size_t>(static_cast<size_t>(p * 10), 9));
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(10), kFalseAlarm));
}

TEST(LeafSpecRandomTest, OneSidedBoundsAreExponential) {
  for (const bool below : {false, true}) {
    const LeafSpec spec = below
                              ? LeafSpec::Bounded(DType::kFloat64, {}, -kInf, 2)
                              : LeafSpec::Bounded(DType::kFloat64, {}, 2, kInf);
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor t, spec.Random({100000}, Rng(4), 0));
    std::vector<int64_t> counts(10);
    for (const double value : Elements<double>(t)) {
      const double p = -std::expm1(-(below ? 2 - value : value - 2));
      ++counts.at(std::min<size_t>(static_cast<size_t>(p * 10), 9));
    }
    EXPECT_THAT(counts, DistributedAs(UniformProbabilities(10), kFalseAlarm));
  }
}

TEST(LeafSpecRandomTest, EveryArithmeticTypeStaysInItsDomain) {
  for (int i = 0; i <= static_cast<int>(DType::kFloat64); ++i) {
    const DType dtype = static_cast<DType>(i);
    for (const LeafSpec& spec :
         {LeafSpec::Unbounded(dtype, {3}), LeafSpec::Binary({3}, dtype),
          LeafSpec::Bounded(dtype, {3}, 0, 0.1),
          LeafSpec::Bounded(dtype, {3}, -1e300, 1e300),
          LeafSpec::Categorical(2, dtype, {3})}) {
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor t, spec.Random({500}, Rng(5), 7));
      EXPECT_THAT(t, TensorIs(dtype, {500, 3}));
      RILL_EXPECT_OK(spec.CheckValues("x", {500}, t)) << spec.ToString();
    }
  }
}

TEST(LeafSpecRandomTest, WholeInt64RangeIsReached) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor t,
                            LeafSpec::Bounded(DType::kInt64, {}, -1e30, 1e30)
                                .Random({80000}, Rng(6), 0));
  std::vector<int64_t> counts(8);
  for (const int64_t value : Elements<int64_t>(t)) {
    ++counts.at(static_cast<size_t>(static_cast<uint64_t>(value) >> 61));
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(8), kFalseAlarm));
}

TEST(LeafSpecRandomTest, UnboundedIntegersLieWithin100) {
  RILL_ASSERT_OK_AND_ASSIGN(
      Tensor t,
      LeafSpec::Unbounded(DType::kInt64, {}).Random({50000}, Rng(7), 0));
  for (int64_t& value : Elements<int64_t>(t)) value += 100;
  EXPECT_THAT(CountInts(t, 201),
              DistributedAs(UniformProbabilities(201), kFalseAlarm));
}

TEST(LeafSpecRandomTest, IsAFunctionOfSeedAndBatch) {
  const LeafSpec spec = LeafSpec::Unbounded(DType::kFloat32, {2});
  const Tensor a = *spec.Random({4}, Rng(1), 0);
  EXPECT_THAT(spec.Random({4}, Rng(1), 0), IsOkAndHolds(BitEqualTo(a)));
  EXPECT_THAT(spec.Random({2}, Rng(1), 0),
              IsOkAndHolds(BitEqualTo(*a.Slice(0, 0, 2))));
  EXPECT_THAT(spec.Random({4}, Rng(1), 1),
              IsOkAndHolds(::testing::Not(BitEqualTo(a))));
  EXPECT_THAT(spec.Random({4}, Rng(2), 0),
              IsOkAndHolds(::testing::Not(BitEqualTo(a))));
}

// --- TensorDictSpec ---------------------------------------------------------

TEST(TensorDictSpecTest, OfReadsTheLayout) {
  TensorDictSpec want;
  RILL_ASSERT_OK(
      want.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4})));
  RILL_ASSERT_OK(want.Set("action", LeafSpec::Unbounded(DType::kInt64, {})));
  RILL_ASSERT_OK(
      want.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSERT_OK(want.Set("next/done", LeafSpec::Unbounded(DType::kBool, {1})));
  EXPECT_EQ(TensorDictSpec::Of(MakeSteps(3)), want);
}

TEST(TensorDictSpecTest, SetReplacesFindsAndErases) {
  TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK(spec.Set("action", LeafSpec::Categorical(9)));
  EXPECT_EQ(spec.leaves()[1].spec.num_categories, 9);
  EXPECT_EQ(spec.leaves().size(), 4);
  EXPECT_EQ(spec.Find("x"), nullptr);
  EXPECT_EQ(spec.Find("next"), nullptr);
  spec.Erase("action");
  spec.Erase("action");
  EXPECT_EQ(spec.Find("action"), nullptr);
  EXPECT_EQ(spec.leaves().size(), 3);
}

TEST(TensorDictSpecTest, AKeyIsALeafOrADictionary) {
  TensorDictSpec spec = StepSpec();
  const LeafSpec leaf = LeafSpec::Unbounded(DType::kFloat32, {});
  EXPECT_THAT(spec.Set("next", leaf),
              StatusIs(kInvalid, HasSubstr("\"next\" beside \"next/reward\"")));
  EXPECT_THAT(spec.Set("action/x", leaf), StatusIs(kInvalid));
  EXPECT_THAT(spec.Set("a//b", leaf), StatusIs(kInvalid));
  RILL_EXPECT_OK(spec.Set("next_", leaf));  // Only a common beginning.
  RILL_EXPECT_OK(spec.Set(R"(next\/x)", leaf));
  EXPECT_EQ(spec.leaves().size(), 6);
}

TEST(TensorDictSpecTest, LayoutNamesMissingAndExtraKeys) {
  const TensorDictSpec spec = StepSpec();
  TensorDict dict = MakeSteps(3);
  RILL_EXPECT_OK(spec.CheckLayout("Test", dict));
  RILL_ASSERT_OK(dict.Rename("action", "act"));
  EXPECT_THAT(
      spec.CheckLayout("Buffer::Extend", dict),
      StatusIs(kInvalid, AllOf(HasSubstr("Buffer::Extend: keys: missing "
                                         "\"action\", too many \"act\""),
                               HasSubstr("want \"observation\", \"action\""))));
  EXPECT_THAT(spec.CheckValues("Test", dict, /*allow_extra=*/true),
              StatusIs(kInvalid, HasSubstr("too many none")));
  dict = MakeSteps(3);
  RILL_ASSERT_OK(dict.Set("next/done", Iota<float>({3, 1})));
  EXPECT_THAT(spec.CheckLayout("Test", dict),
              StatusIs(kInvalid, HasSubstr("Test: \"next/done\": got "
                                           "float32[3, 1], want bool[3, 1]")));
}

TEST(TensorDictSpecTest, ValuesAreCheckedAgainstDomains) {
  const TensorDictSpec spec = StepSpec();
  RILL_EXPECT_OK(spec.CheckValues("Test", MakeSteps(2)));
  EXPECT_THAT(spec.CheckValues("Test", MakeSteps(3)),
              StatusIs(kInvalid, HasSubstr("Test: \"action\"")));
  TensorDict more = MakeSteps(2);
  RILL_ASSERT_OK(more.Set("x", Iota<float>({2})));
  EXPECT_THAT(spec.CheckValues("Test", more), StatusIs(kInvalid));
  RILL_EXPECT_OK(spec.CheckValues("Test", more, /*allow_extra=*/true));
}

TEST(TensorDictSpecTest, RandomIsInsideAndLeavesAreIndependent) {
  TensorDictSpec spec = StepSpec();
  RILL_ASSERT_OK(spec.Set("twin", *spec.Find("observation")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            spec.Random({5, 2}, Rng(1), 0));
  EXPECT_EQ(dict.batch_shape(), Shape({5, 2}));
  RILL_EXPECT_OK(spec.CheckValues("Test", dict));
  EXPECT_THAT(*dict.Get("twin"),
              ::testing::Not(BitEqualTo(*dict.Get("observation"))));
}

TEST(TensorDictSpecTest, EmptyIsOneAllocation) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            StepSpec().Empty({100000}, {}));
  RILL_EXPECT_OK(StepSpec().CheckLayout("Test", dict));
  EXPECT_EQ(dict.Find("observation")->buffer(),
            dict.Find("next/done")->buffer());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                            StepSpec().Empty({3}, {.device = Device::Fake()}));
  EXPECT_EQ(there.Find("action")->device(), Device::Fake());
}

TEST(TensorDictSpecTest, ZeroIsZero) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, StepSpec().Zero({3}));
  EXPECT_THAT(*dict.Flat<float>("observation"), Each(0));
  EXPECT_THAT(*dict.Flat<bool>("next/done"), Each(false));
  EXPECT_THAT(LeafSpec::Categorical(3).Zero({2}),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 0)));
}

TEST(TensorDictSpecTest, SizesThatOverflowAreStatuses) {
  EXPECT_THAT(StepSpec().Empty({int64_t{1} << 60}, {}), StatusIs(kInvalid));
  EXPECT_THAT(StepSpec().Zero({int64_t{1} << 62}),
              StatusIs(kInvalid, HasSubstr("\"observation\"")));
}

}  // namespace
}  // namespace rill
