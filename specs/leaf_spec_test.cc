// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/leaf_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/specs/test_specs.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
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

absl::StatusOr<Tensor> RunExample(const Tensor& mask) {
  const LeafSpec move = LeafSpec::OneHot(3);
  RILL_ASSIGN_OR_RETURN(const LeafSpec legal, move.WithMask(mask));
  RILL_ASSIGN_OR_RETURN(Tensor moves, legal.Random({32}, Rng(1), 0));
  EXPECT_TRUE(legal.Contains(moves));
  RILL_ASSIGN_OR_RETURN(Tensor stay, legal.EncodeInts({2}));
  return stay;
}

TEST(LeafSpecTest, Example) {
  EXPECT_THAT(RunExample(MakeTensor<bool>({true, false, true}, {3})),
              IsOkAndHolds(TensorElementsAre<bool>(false, false, true)));
}

TEST(LeafSpecTest, TextShowsLayoutAndDomain) {
  EXPECT_EQ(LeafSpec::Unbounded(DType::kFloat32, {4}).ToString(), "float32[4]");
  EXPECT_EQ(LeafSpec::Bounded(DType::kFloat32, {4}, -1, 1).ToString(),
            "float32[4] in [-1, 1]");
  EXPECT_EQ(LeafSpec::Categorical(5).ToString(), "int64[] in {0, ..., 4}");
  EXPECT_EQ(LeafSpec::Binary({1}).ToString(), "bool[1] in {0, 1}");
  EXPECT_EQ(LeafSpec::OneHot(3).ToString(), "bool[3] in one-hot(3)");
  EXPECT_EQ(LeafSpec::MultiOneHot({2, 3}, DType::kFloat32, {4}).ToString(),
            "float32[4, 5] in one-hot(2, 3)");
  EXPECT_EQ(LeafSpec::MultiCategorical({2, 1}).ToString(),
            "int64[2] in {0, ..., 1} x {0}");
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
    EXPECT_THAT(spec.CheckDomain(), StatusIs(kInvalid)) << spec.ToString();
    EXPECT_THAT(spec.Random({1}, Rng(1), 0), StatusIs(kInvalid));
    EXPECT_EQ(spec.Cardinality(), std::nullopt);
  };
  refused(LeafSpec::Bounded(DType::kFloat32, {}, 1, -1));
  refused(LeafSpec::Bounded(DType::kFloat32, {}, NAN, 1));
  refused(LeafSpec::Bounded(DType::kInt32, {}, 0.2, 0.8));  // No whole number.
  refused(LeafSpec::Bounded(DType::kUInt8, {}, -5, -1));
  refused(LeafSpec::Bounded(DType::kUInt32, {}, 0, 1));  // No arithmetic.
  refused(LeafSpec::Categorical(0));
  refused(LeafSpec::Categorical(257, DType::kUInt8));
  refused(LeafSpec::Binary({}, DType::kComplex64));
  refused(LeafSpec::Categorical(258, DType::kBFloat16));
  refused(LeafSpec::OneHot(0));
  refused(LeafSpec::OneHot(-3));
  refused(LeafSpec::OneHot(3, DType::kUInt16));
  refused(LeafSpec::MultiCategorical({}));
  refused(LeafSpec::MultiCategorical({2, 0}));
  refused(LeafSpec::MultiCategorical({2, 300}, DType::kUInt8));
  refused(LeafSpec::MultiOneHot({}));
  refused(LeafSpec::MultiOneHot({INT64_MAX, INT64_MAX, 2}));
  LeafSpec reshaped = LeafSpec::OneHot(3);
  reshaped.shape = {4};
  refused(reshaped);
  RILL_EXPECT_OK(LeafSpec::Categorical(257, DType::kBFloat16).CheckDomain());
  RILL_EXPECT_OK(LeafSpec::OneHot(300, DType::kUInt8).CheckDomain());
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

TEST(LeafSpecRandomTest, IntoReusesWhatFits) {
  const LeafSpec spec = LeafSpec::OneHot(3, DType::kFloat32);
  RILL_ASSERT_OK_AND_ASSIGN(Tensor out, spec.Random({4}, Rng(1), 0));
  const std::byte* const bytes = out.raw_data();
  RILL_ASSERT_OK(spec.RandomInto({4}, Rng(2), 0, &out));
  EXPECT_EQ(out.raw_data(), bytes);
  EXPECT_THAT(spec.Random({4}, Rng(2), 0), IsOkAndHolds(BitEqualTo(out)));
  RILL_ASSERT_OK(spec.RandomInto({5}, Rng(2), 0, &out));
  EXPECT_THAT(out, TensorIs(DType::kFloat32, {5, 3}));
  const Tensor before = out;
  EXPECT_THAT(LeafSpec::Categorical(0).RandomInto({5}, Rng(2), 0, &out),
              StatusIs(kInvalid));
  EXPECT_EQ(out.raw_data(), before.raw_data());
}

// --- Choices ----------------------------------------------------------------

TEST(LeafSpecTest, OneHotWantsExactlyOne) {
  const LeafSpec spec = LeafSpec::OneHot(3, DType::kFloat32);
  RILL_EXPECT_OK(spec.CheckValues(
      "a", {2}, MakeTensor<float>({0, 1, 0, 0, 0, 1}, {2, 3})));
  EXPECT_THAT(
      spec.CheckValues("a", {2}, MakeTensor<float>({0, 1, 0, 1, 0, 1}, {2, 3})),
      StatusIs(kInvalid,
               AllOf(HasSubstr("\"a\": from element 3 of shape [2, 3]"),
                     HasSubstr("got {1, 0, 1}, want one 1 among zeros"))));
  for (const float bad : {0.0f, 0.5f, 2.0f, NAN}) {
    EXPECT_FALSE(spec.Contains(MakeTensor<float>({0, bad, 0}, {3}))) << bad;
  }
  EXPECT_FALSE(spec.Contains(MakeTensor<float>({0, 1}, {2})));
}

TEST(LeafSpecTest, MultiFormsCheckEveryChoice) {
  const LeafSpec hot = LeafSpec::MultiOneHot({2, 3}, DType::kUInt8);
  EXPECT_TRUE(hot.Contains(MakeTensor<uint8_t>({0, 1, 1, 0, 0}, {5})));
  EXPECT_THAT(
      hot.CheckValues("a", {}, MakeTensor<uint8_t>({1, 1, 0, 0, 0}, {5})),
      StatusIs(kInvalid, HasSubstr("from element 0")));
  EXPECT_THAT(
      hot.CheckValues("a", {}, MakeTensor<uint8_t>({0, 1, 0, 0, 0}, {5})),
      StatusIs(kInvalid, HasSubstr("from element 2")));
  const LeafSpec index = LeafSpec::MultiCategorical({2, 3});
  EXPECT_TRUE(index.Contains(MakeTensor<int64_t>({1, 2}, {2})));
  EXPECT_THAT(
      index.CheckValues("a", {}, MakeTensor<int64_t>({2, 2}, {2})),
      StatusIs(kInvalid, HasSubstr("element 0 of shape [2]: got 2, want a "
                                   "value in {0, ..., 1}")));
  EXPECT_FALSE(index.Contains(MakeTensor<int64_t>({0, 3}, {2})));
  EXPECT_FALSE(index.Contains(MakeTensor<int64_t>({0, -1}, {2})));
}

TEST(LeafSpecTest, BoolBytesFromFilesCountAsTrue) {
  Tensor t = *Tensor::Zeros(DType::kBool, {3});
  t.raw_data()[1] = std::byte{7};
  EXPECT_TRUE(LeafSpec::OneHot(3).Contains(t));
  EXPECT_THAT(LeafSpec::OneHot(3).ToCategorical(t),
              IsOkAndHolds(TensorElementsAre<int64_t>(1)));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor p, LeafSpec::Binary({3}).Project(t));
  EXPECT_EQ(p.raw_data()[1], std::byte{1});
  // A mask of such bytes is kept as 0 and 1.
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec masked,
                            LeafSpec::Categorical(3).WithMask(t));
  EXPECT_EQ(masked.mask()->raw_data()[1], std::byte{1});
}

TEST(LeafSpecMaskTest, RestrictsMembersAndNamesTheOption) {
  const Tensor mask = MakeTensor<bool>({true, false, true}, {3});
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec spec,
                            LeafSpec::Categorical(3).WithMask(mask));
  EXPECT_EQ(spec.ToString(), "int64[] in {0, ..., 2} masked");
  RILL_EXPECT_OK(spec.CheckValues("a", {2}, MakeTensor<int64_t>({0, 2}, {2})));
  EXPECT_THAT(
      spec.CheckValues("a", {2}, MakeTensor<int64_t>({0, 1}, {2})),
      StatusIs(kInvalid, HasSubstr("element 1 of shape [2]: got option 1, want "
                                   "one that the mask")));
  mask.data<bool>()[1] = true;  // The spec has its own bytes.
  EXPECT_FALSE(spec.Contains(MakeTensor<int64_t>({1}, {1})));
  EXPECT_EQ(spec.WithoutMask(), LeafSpec::Categorical(3));
  EXPECT_NE(spec, LeafSpec::Categorical(3));
}

TEST(LeafSpecMaskTest, OneOfABatchIsForThatBatch) {
  const Tensor mask =
      MakeTensor<bool>({true, false, false, false, true, true}, {2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec spec,
                            LeafSpec::Categorical(3).WithMask(mask));
  EXPECT_TRUE(spec.Contains(MakeTensor<int64_t>({0, 2}, {2})));
  EXPECT_FALSE(spec.Contains(MakeTensor<int64_t>({0, 0}, {2})));
  EXPECT_FALSE(spec.Contains(MakeTensor<int64_t>({1, 1}, {2})));
  // It ends longer batch shapes too.
  EXPECT_TRUE(spec.Contains(MakeTensor<int64_t>({0, 2, 0, 1}, {2, 2})));
  EXPECT_THAT(spec.Random({3}, Rng(1), 0),
              StatusIs(kInvalid, AllOf(HasSubstr("mask of shape [2, 3]"),
                                       HasSubstr("got batch shape [3]"))));
  EXPECT_THAT(spec.Random({}, Rng(1), 0), StatusIs(kInvalid));
  EXPECT_THAT(spec.Project(Iota<int64_t>({3})), StatusIs(kInvalid));
  EXPECT_EQ(spec.Cardinality(), std::nullopt);
}

TEST(LeafSpecMaskTest, HasOneForm) {
  const LeafSpec spec = LeafSpec::OneHot(3, DType::kBool, {2});
  const Tensor row = MakeTensor<bool>({true, false, true}, {3});
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec masked, spec.WithMask(row));
  EXPECT_EQ(masked.mask()->shape(), Shape({3}));
  EXPECT_THAT(spec.WithMask(*row.Expand({4, 2, 3})), IsOkAndHolds(masked));
  EXPECT_THAT(masked.WithMask(*row.Expand({1, 3})), IsOkAndHolds(masked));
  const Tensor all = MakeTensor<bool>({true, true, true}, {3});
  EXPECT_THAT(masked.WithMask(all), IsOkAndHolds(spec));
}

TEST(LeafSpecMaskTest, BadOnesAreRefused) {
  const auto bools = [](const Shape& shape) {
    Tensor t = *Tensor::Zeros(DType::kBool, shape);
    for (int64_t i = 0; i < t.num_elements(); i += 2) t.data<bool>()[i] = true;
    return t;
  };
  const LeafSpec spec = LeafSpec::Categorical(3, DType::kInt64, {2});
  RILL_EXPECT_OK(spec.WithMask(bools({3})));
  RILL_EXPECT_OK(spec.WithMask(bools({5, 2, 3})));
  EXPECT_THAT(spec.WithMask(bools({2})), StatusIs(kInvalid));
  EXPECT_THAT(spec.WithMask(bools({})), StatusIs(kInvalid));
  EXPECT_THAT(spec.WithMask(bools({4, 3})),
              StatusIs(kInvalid, HasSubstr("bool[4, 3]")));
  EXPECT_THAT(spec.WithMask(Iota<int64_t>({3})),
              StatusIs(kInvalid, HasSubstr("want bool")));
  EXPECT_THAT(
      spec.WithMask(*Tensor::Zeros(DType::kBool, {3})),
      StatusIs(kInvalid, HasSubstr("choice 0 of row 0 of the mask: got no")));
  EXPECT_THAT(LeafSpec::MultiCategorical({1, 2}).WithMask(
                  MakeTensor<bool>({true, false, false}, {3})),
              StatusIs(kInvalid, HasSubstr("choice 1 of row 0")));
  for (const LeafSpec& other :
       {LeafSpec::Binary({3}), LeafSpec::Unbounded(DType::kFloat32, {3}),
        LeafSpec::Bounded(DType::kFloat32, {3}, 0, 1)}) {
    EXPECT_THAT(other.WithMask(bools({3})),
                StatusIs(kInvalid, HasSubstr("without choices")));
  }
}

// Every member of a finite spec is as likely as any other.
void ExpectUniform(const LeafSpec& spec, uint64_t seed) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor all, spec.Enumerate());
  const int64_t members = all.shape()[0];
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor drawn,
                            spec.Random({members * 500}, Rng(seed), 3));
  const int64_t bytes = all.size_bytes() / members;
  std::vector<int64_t> counts(static_cast<size_t>(members));
  for (int64_t i = 0; i < members * 500; ++i) {
    const std::byte* const draw = drawn.raw_data() + i * bytes;
    int64_t member = 0;
    while (member < members &&
           !std::equal(draw, draw + bytes, all.raw_data() + member * bytes)) {
      ++member;
    }
    ASSERT_LT(member, members) << "not among the members: draw " << i;
    ++counts[member];
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(members), kFalseAlarm))
      << spec.ToString();
}

TEST(LeafSpecRandomTest, MembersAreUniformJointly) {
  ExpectUniform(LeafSpec::OneHot(5), 1);
  ExpectUniform(LeafSpec::OneHot(3, DType::kFloat16, {2}), 2);
  ExpectUniform(LeafSpec::MultiOneHot({2, 3, 1}, DType::kFloat32), 3);
  ExpectUniform(LeafSpec::MultiCategorical({4, 2}, DType::kInt16), 4);
  ExpectUniform(LeafSpec::Binary({4}), 5);
  ExpectUniform(LeafSpec::Categorical(3, DType::kBFloat16, {2}), 6);
}

TEST(LeafSpecRandomTest, MasksLeaveTheRestUniform) {
  const auto masked = [](const LeafSpec& spec, const Tensor& mask) {
    return *spec.WithMask(mask);
  };
  ExpectUniform(
      masked(LeafSpec::Categorical(5), MakeTensor<bool>({0, 1, 1, 0, 1}, {5})),
      1);
  ExpectUniform(masked(LeafSpec::OneHot(3, DType::kBool, {2}),
                       MakeTensor<bool>({1, 0, 1, 0, 1, 1}, {2, 3})),
                2);
  ExpectUniform(masked(LeafSpec::MultiOneHot({3, 2}, DType::kInt32),
                       MakeTensor<bool>({0, 1, 1, 1, 1}, {5})),
                3);
  ExpectUniform(masked(LeafSpec::MultiCategorical({3, 4}),
                       MakeTensor<bool>({1, 0, 1, 0, 1, 1, 1}, {7})),
                4);
}

TEST(LeafSpecRandomTest, MasksOfABatchHoldForTheirRows) {
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec spec,
                            LeafSpec::Categorical(3).WithMask(
                                MakeTensor<bool>({1, 0, 1, 0, 1, 1}, {2, 3})));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor t, spec.Random({20000, 2}, Rng(1), 0));
  std::vector<int64_t> counts(6);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    ++counts[i % 2 * 3 + t.data<int64_t>()[i]];
  }
  EXPECT_THAT(counts,
              DistributedAs({0.25, 0, 0.25, 0, 0.25, 0.25}, kFalseAlarm));
}

TEST(LeafSpecRandomTest, OneHotAndCategoricalDrawTheSameOptions) {
  const Tensor mask = MakeTensor<bool>({1, 0, 1, 1}, {4});
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec index,
                            LeafSpec::Categorical(4).WithMask(mask));
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec hot, index.ToOneHotSpec());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor options,
                            index.Random({50}, Rng(1), 0));
  EXPECT_THAT(hot.Random({50}, Rng(1), 0),
              IsOkAndHolds(BitEqualTo(*index.ToOneHot(options))));
}

// --- Bounds by element ------------------------------------------------------

TEST(LeafSpecBoundsTest, EachElementHasItsOwn) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec spec,
      LeafSpec::Bounded(MakeTensor<float>({-1, 2}, {2}),
                        MakeTensor<float>({0, INFINITY}, {2})));
  EXPECT_EQ(spec.ToString(), "float32[2] in [-1, inf] by element");
  EXPECT_EQ(spec.low, -1);
  EXPECT_EQ(spec.high, kInf);
  EXPECT_TRUE(spec.Contains(MakeTensor<float>({-1, 2, 0, 1e30f}, {2, 2})));
  EXPECT_THAT(
      spec.CheckValues("x", {2}, MakeTensor<float>({-1, 2, 0, 1}, {2, 2})),
      StatusIs(kInvalid, HasSubstr("element 3 of shape [2, 2]: got 1, want a "
                                   "value in [2, inf]")));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor t, spec.Random({1000}, Rng(1), 0));
  EXPECT_TRUE(spec.Contains(t));
}

TEST(LeafSpecBoundsTest, RandomIsUniformByElement) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec spec,
      LeafSpec::Bounded(MakeTensor<int64_t>({0, 10}, {2}),
                        MakeTensor<int64_t>({1, 13}, {2})));
  ExpectUniform(spec, 9);
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec big,
      LeafSpec::Bounded(MakeTensor<int64_t>({INT64_MAX - 1, 0}, {2}),
                        MakeTensor<int64_t>({INT64_MAX, 0}, {2})));
  EXPECT_THAT(big.Enumerate(), IsOkAndHolds(TensorElementsAre<int64_t>(
                                   INT64_MAX - 1, 0, INT64_MAX, 0)));
}

TEST(LeafSpecBoundsTest, EqualOnesAreScalars) {
  EXPECT_THAT(LeafSpec::Bounded(MakeTensor<float>({-1, -1}, {2}),
                                MakeTensor<float>({0.1f, 0.1f}, {2})),
              IsOkAndHolds(LeafSpec::Bounded(DType::kFloat32, {2}, -1,
                                             static_cast<double>(0.1f))));
  // Doubles do not say these.
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec exact,
      LeafSpec::Bounded(MakeTensor<int64_t>({INT64_MAX - 1}, {1}),
                        MakeTensor<int64_t>({INT64_MAX - 1}, {1})));
  ASSERT_NE(exact.lows(), nullptr);
  EXPECT_FALSE(exact.Contains(MakeTensor<int64_t>({INT64_MAX}, {1})));
  EXPECT_TRUE(exact.Contains(MakeTensor<int64_t>({INT64_MAX - 1}, {1})));
}

TEST(LeafSpecBoundsTest, BadOnesAreRefused) {
  const Tensor zeros = *Tensor::Zeros(DType::kFloat32, {2});
  EXPECT_THAT(LeafSpec::Bounded(zeros, MakeTensor<float>({0, -1}, {2})),
              StatusIs(kInvalid, HasSubstr("element 1 of [2]: got [0, -1]")));
  EXPECT_THAT(LeafSpec::Bounded(zeros, MakeTensor<float>({NAN, 1}, {2})),
              StatusIs(kInvalid, HasSubstr("element 0")));
  EXPECT_THAT(LeafSpec::Bounded(zeros, *Tensor::Zeros(DType::kFloat32, {3})),
              StatusIs(kInvalid, HasSubstr("float32[3]")));
  EXPECT_THAT(LeafSpec::Bounded(zeros, *Tensor::Zeros(DType::kFloat64, {2})),
              StatusIs(kInvalid));
  const Tensor words = *Tensor::Zeros(DType::kUInt16, {2});
  EXPECT_THAT(LeafSpec::Bounded(words, words),
              StatusIs(kInvalid, HasSubstr("arithmetic")));
  RILL_ASSERT_OK_AND_ASSIGN(LeafSpec spec,
                            LeafSpec::Bounded(zeros, Iota<float>({2})));
  spec.shape = {3};
  EXPECT_THAT(spec.CheckDomain(), StatusIs(kInvalid, HasSubstr("by element")));
}

TEST(LeafSpecBoundsTest, MapKeepsThemInOrder) {
  const auto flip = [](double x) { return -2 * x; };
  EXPECT_THAT(LeafSpec::Bounded(DType::kFloat32, {2}, -1, 3).MapBounds(flip),
              IsOkAndHolds(LeafSpec::Bounded(DType::kFloat32, {2}, -6, 2)));
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec each,
      LeafSpec::Bounded(MakeTensor<float>({-1, 2}, {2}),
                        MakeTensor<float>({3, INFINITY}, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec want,
      LeafSpec::Bounded(MakeTensor<float>({-6, -INFINITY}, {2}),
                        MakeTensor<float>({2, -4}, {2})));
  EXPECT_THAT(each.MapBounds(flip), IsOkAndHolds(want));
  const auto to_nan = [](double) -> double { return NAN; };
  EXPECT_THAT(each.MapBounds(to_nan), StatusIs(kInvalid));
  EXPECT_THAT(LeafSpec::Categorical(2).MapBounds(flip), StatusIs(kInvalid));
}

TEST(LeafSpecTest, EqualityLooksAtWhatTheDomainHas) {
  // Each of some specs is equal to itself made again, and to no other.
  for (int64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(RandomLeafSpec(Rng(1), i), RandomLeafSpec(Rng(1), i));
  }
  LeafSpec spec = LeafSpec::Unbounded(DType::kFloat32, {});
  spec.low = 3;
  EXPECT_EQ(spec, LeafSpec::Unbounded(DType::kFloat32, {}));
  EXPECT_NE(LeafSpec::Categorical(2), LeafSpec::Categorical(3));
  EXPECT_NE(LeafSpec::MultiOneHot({2, 3}), LeafSpec::MultiOneHot({3, 2}));
  EXPECT_NE(LeafSpec::OneHot(3), LeafSpec::Binary({3}));
  EXPECT_NE(LeafSpec::OneHot(3), LeafSpec::MultiOneHot({3}));
}

}  // namespace
}  // namespace rill
