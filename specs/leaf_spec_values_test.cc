// SPDX-License-Identifier: Apache-2.0
// Projecting, encoding, converting and enumerating members of a LeafSpec.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/test_specs.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kSpecs = 400;

// --- Project ----------------------------------------------------------------

TEST(LeafSpecProjectTest, BoundsClamp) {
  EXPECT_THAT(
      LeafSpec::Bounded(DType::kFloat32, {6}, -1, 0.1)
          .Project(MakeTensor<float>({-2, -1, 0.05f, 0.1f, kInf, NAN}, {6})),
      IsOkAndHolds(TensorElementsAre<float>(-1, -1, 0.05f, 0.1f, 0.1f, 0)));
  EXPECT_THAT(LeafSpec::Bounded(DType::kFloat32, {1}, 2, 3)
                  .Project(MakeTensor<float>({NAN}, {1})),
              IsOkAndHolds(TensorElementsAre<float>(2)));
  EXPECT_THAT(LeafSpec::Bounded(DType::kInt8, {3}, -1.5, 300)
                  .Project(MakeTensor<int8_t>({-100, 0, 127}, {3})),
              IsOkAndHolds(TensorElementsAre<int8_t>(-1, 0, 127)));
  EXPECT_THAT(LeafSpec::Bounded(MakeTensor<int64_t>({0, 5}, {2}),
                                MakeTensor<int64_t>({1, 6}, {2}))
                  ->Project(MakeTensor<int64_t>({4, 4, -1, 6}, {2, 2})),
              IsOkAndHolds(TensorElementsAre<int64_t>(1, 5, 0, 6)));
}

TEST(LeafSpecProjectTest, CategoriesAreTheNearestAllowed) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec spec,
      LeafSpec::Categorical(6, DType::kFloat32)
          .WithMask(MakeTensor<bool>({0, 1, 0, 0, 1, 0}, {6})));
  // 2.5 is rounded to 2, 3.5 to 4; 2 lies nearer to 1, 5 nearer to 4.
  EXPECT_THAT(spec.Project(MakeTensor<float>(
                  {0, 1, 2.5f, 3, 3.5f, 99, -kInf, NAN}, {8})),
              IsOkAndHolds(TensorElementsAre<float>(1, 1, 1, 4, 4, 4, 1, 1)));
  EXPECT_THAT(LeafSpec::Binary({4}, DType::kFloat32)
                  .Project(MakeTensor<float>({0.5f, 0.6f, -3, NAN}, {4})),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, 0, 0)));
}

TEST(LeafSpecProjectTest, OneHotTakesTheLargestAllowed) {
  const LeafSpec spec = LeafSpec::OneHot(3, DType::kFloat32);
  EXPECT_THAT(
      spec.Project(
          MakeTensor<float>({0.2f, 3, 3, NAN, -5, NAN, 0, 0, 0}, {3, 3})),
      IsOkAndHolds(TensorElementsAre<float>(0, 1, 0, 0, 1, 0, 1, 0, 0)));
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec masked,
                            spec.WithMask(MakeTensor<bool>({1, 0, 1}, {3})));
  EXPECT_THAT(masked.Project(MakeTensor<float>({1, 9, 2}, {3})),
              IsOkAndHolds(TensorElementsAre<float>(0, 0, 1)));
}

TEST(LeafSpecProjectTest, StridedAndDeviceTensorsStayWhereTheyAre) {
  const LeafSpec spec = LeafSpec::Bounded(DType::kInt32, {2}, 0, 4);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned,
                            Iota<int32_t>({2, 3}).Permute({1, 0}));
  EXPECT_THAT(spec.Project(turned),
              IsOkAndHolds(TensorElementsAre<int32_t>(0, 3, 1, 4, 2, 4)));
  EXPECT_EQ(*turned.Select(0, 2)->Select(0, 1)->Item<int32_t>(), 5);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, turned.To(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor projected, spec.Project(there));
  EXPECT_EQ(projected.device(), Device::Fake());
  EXPECT_TRUE(spec.Contains(projected));
  EXPECT_THAT(spec.Project(Iota<int64_t>({2})), StatusIs(kInvalid));
  EXPECT_THAT(spec.Project(Iota<int32_t>({3})), StatusIs(kInvalid));
}

// Numbers of all kinds, cast to the dtype.
Tensor Junk(const LeafSpec& spec, uint64_t seed) {
  const Shape full = *spec.FullShape({5});
  Tensor junk = *Tensor::Empty(DType::kFloat64, full);
  const bool real = IsFloatingPoint(spec.dtype);
  for (int64_t i = 0; i < full.num_elements(); ++i) {
    const Rng rng(seed);
    const uint32_t draw = static_cast<uint32_t>(i);
    const int64_t kind = rng.UniformInt(0, draw, 12);
    double value = static_cast<double>(rng.UniformInt(1, draw, 17)) / 2 - 4;
    if (!real) value = std::floor(value);
    if (spec.dtype == DType::kUInt8) value = std::fabs(value);
    if (real && kind == 0) value = NAN;
    if (real && kind == 1) value = kInf;
    if (real && kind == 2) value = -kInf;
    junk.data<double>()[i] = value;
  }
  return *Cast(junk, spec.dtype);
}

TEST(LeafSpecProjectTest, IsInsideAndKeepsMembers) {
  int members = 0;
  for (int i = 0; i < kSpecs; ++i) {
    const LeafSpec spec = RandomLeafSpec(Rng(11), i);
    if (spec.dtype > DType::kFloat64) continue;  // Without arithmetic.
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor member,
                              spec.Random({5}, Rng(12), i));
    EXPECT_TRUE(spec.Contains(member)) << spec.ToString();
    EXPECT_THAT(spec.Project(member), IsOkAndHolds(BitEqualTo(member)))
        << spec.ToString();
    const Tensor junk = Junk(spec, i);
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor projected, spec.Project(junk));
    RILL_EXPECT_OK(spec.CheckValues("x", {5}, projected)) << spec.ToString();
    if (spec.domain == LeafSpec::Domain::kUnbounded) {
      EXPECT_THAT(projected, BitEqualTo(junk));
    }
    ++members;
  }
  EXPECT_GT(members, kSpecs / 2);
}

// --- Enumerate --------------------------------------------------------------

// The tensors of the dtype whose elements are -4 .. 4, counted by asking each.
int64_t CountByTrial(const LeafSpec& spec) {
  const bool is_signed =
      spec.dtype != DType::kBool && spec.dtype != DType::kUInt8;
  const int64_t low = is_signed ? -4 : 0;
  const int64_t high = spec.dtype == DType::kBool ? 1 : 4;
  std::vector<int64_t> values(static_cast<size_t>(spec.shape.num_elements()),
                              low);
  int64_t count = 0;
  for (;;) {
    const Tensor t = *Tensor::From<int64_t>(values, spec.shape);
    count += spec.Contains(*Cast(t, spec.dtype));
    size_t at = 0;
    while (at < values.size() && values[at] == high) values[at++] = low;
    if (at == values.size()) return count;
    ++values[at];
  }
}

TEST(LeafSpecEnumerateTest, FindsEveryMemberOnce) {
  int tried = 0;
  for (int i = 0; i < kSpecs; ++i) {
    const LeafSpec spec = RandomLeafSpec(Rng(21), i);
    const std::optional<int64_t> members = spec.Cardinality();
    if (!members.has_value() || *members > 2000) continue;
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor all, spec.Enumerate());
    ASSERT_EQ(all.shape()[0], *members);
    EXPECT_TRUE(spec.Contains(all)) << spec.ToString();
    std::set<std::string> texts;
    for (int64_t m = 0; m < *members; ++m) {
      const Tensor one = *all.Index(m)->Clone();
      texts.insert(std::string(reinterpret_cast<const char*>(one.raw_data()),
                               static_cast<size_t>(one.size_bytes())));
    }
    EXPECT_EQ(static_cast<int64_t>(texts.size()), *members) << spec.ToString();
    const bool is_small = spec.domain != LeafSpec::Domain::kUnbounded &&
                          spec.low >= -4 && spec.high <= 4 &&
                          spec.shape.num_elements() <= 3;
    if (is_small) {
      EXPECT_EQ(CountByTrial(spec), *members) << spec.ToString();
      ++tried;
    }
  }
  EXPECT_GT(tried, 50);
}

TEST(LeafSpecEnumerateTest, GoesLastFirst) {
  EXPECT_THAT(LeafSpec::MultiCategorical({2, 3}).Enumerate(),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 0, 0, 1, 0, 2, 1, 0, 1,
                                                      1, 1, 2)));
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec masked,
      LeafSpec::OneHot(3).WithMask(MakeTensor<bool>({0, 1, 1}, {3})));
  EXPECT_THAT(masked.Enumerate(),
              IsOkAndHolds(TensorElementsAre<bool>(0, 1, 0, 0, 0, 1)));
}

TEST(LeafSpecEnumerateTest, KnowsItsLimits) {
  EXPECT_EQ(LeafSpec::Unbounded(DType::kInt8, {}).Cardinality(), 256);
  EXPECT_EQ(LeafSpec::Unbounded(DType::kBool, {62}).Cardinality(),
            int64_t{1} << 62);
  EXPECT_EQ(LeafSpec::Unbounded(DType::kBool, {63}).Cardinality(),
            std::nullopt);
  EXPECT_EQ(LeafSpec::Unbounded(DType::kInt64, {}).Cardinality(), std::nullopt);
  EXPECT_EQ(LeafSpec::Unbounded(DType::kInt64, {0}).Cardinality(), 1);
  EXPECT_EQ(LeafSpec::Bounded(DType::kFloat32, {}, 0, 1).Cardinality(),
            std::nullopt);
  EXPECT_EQ(LeafSpec::Bounded(DType::kInt64, {}, -1e30, 1e30).Cardinality(),
            std::nullopt);
  EXPECT_EQ(LeafSpec::Bounded(DType::kInt64, {}, 0.5, 3.5).Cardinality(), 3);
  EXPECT_EQ(LeafSpec::Binary({int64_t{1} << 50}).Cardinality(), std::nullopt);
  EXPECT_THAT(
      LeafSpec::Bounded(DType::kInt64, {}, -1e30, -9.3e18).CheckDomain(),
      IsOk());
  EXPECT_THAT(LeafSpec::Categorical(100).Enumerate(99),
              StatusIs(kInvalid, HasSubstr("got 100, want at most 99")));
  EXPECT_THAT(LeafSpec::Unbounded(DType::kFloat32, {}).Enumerate(),
              StatusIs(kInvalid, HasSubstr("no finite number")));
}

// --- Encode -----------------------------------------------------------------

TEST(LeafSpecEncodeTest, OneHotTakesOptions) {
  EXPECT_THAT(LeafSpec::OneHot(4).EncodeInts({2}),
              IsOkAndHolds(TensorElementsAre<bool>(0, 0, 1, 0)));
  EXPECT_THAT(LeafSpec::OneHot(2, DType::kFloat32).Encode({1, 0}, {2}),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, 1, 0)));
  EXPECT_THAT(LeafSpec::MultiOneHot({2, 3}).EncodeInts({1, 0}),
              IsOkAndHolds(TensorElementsAre<bool>(0, 1, 1, 0, 0)));
  const LeafSpec spec = LeafSpec::OneHot(3);
  EXPECT_THAT(spec.EncodeInts({3}),
              StatusIs(kInvalid, HasSubstr("value 0: got 3, want an option in "
                                           "{0, ..., 2}")));
  EXPECT_THAT(spec.EncodeInts({0, -1}, {2}),
              StatusIs(kInvalid, HasSubstr("value 1: got -1")));
  EXPECT_THAT(spec.Encode({0.5}), StatusIs(kInvalid, HasSubstr("got 0.5")));
  EXPECT_THAT(spec.Encode({NAN}), StatusIs(kInvalid));
  EXPECT_THAT(spec.EncodeInts({0, 1, 0}),
              StatusIs(kInvalid, HasSubstr("got 3, want 1, an option each")));
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec masked,
                            spec.WithMask(MakeTensor<bool>({0, 1, 1}, {3})));
  EXPECT_THAT(masked.EncodeInts({0}),
              StatusIs(kInvalid, HasSubstr("that the mask allows")));
}

TEST(LeafSpecEncodeTest, OtherDomainsTakeElements) {
  EXPECT_THAT(LeafSpec::Categorical(3).EncodeInts({2, 0}, {2}),
              IsOkAndHolds(TensorElementsAre<int64_t>(2, 0)));
  EXPECT_THAT(LeafSpec::Categorical(3).EncodeInts({3}),
              StatusIs(kInvalid, HasSubstr("got 3")));
  EXPECT_THAT(
      LeafSpec::Bounded(DType::kFloat32, {2}, -1, 0.1).Encode({-1, 0.1}),
      IsOkAndHolds(TensorElementsAre<float>(-1, 0.1f)));
  EXPECT_THAT(LeafSpec::Bounded(DType::kFloat32, {1}, -1, 0.1).Encode({0.2}),
              StatusIs(kInvalid));
  const LeafSpec bytes = LeafSpec::Unbounded(DType::kUInt8, {1});
  EXPECT_THAT(bytes.EncodeInts({255}),
              IsOkAndHolds(TensorElementsAre<uint8_t>(255)));
  EXPECT_THAT(bytes.EncodeInts({256}),
              StatusIs(kInvalid, HasSubstr("want a whole number in 0 .. 255")));
  EXPECT_THAT(bytes.EncodeInts({-1}), StatusIs(kInvalid));
  EXPECT_THAT(bytes.Encode({1.5}), StatusIs(kInvalid));
  EXPECT_THAT(bytes.Encode({1e300}), StatusIs(kInvalid));
  EXPECT_THAT(LeafSpec::Unbounded(DType::kInt64, {2})
                  .EncodeInts({INT64_MAX, INT64_MIN}),
              IsOkAndHolds(TensorElementsAre<int64_t>(INT64_MAX, INT64_MIN)));
  EXPECT_THAT(LeafSpec::Unbounded(DType::kComplex64, {1}).Encode({1}),
              StatusIs(kInvalid, HasSubstr("arithmetic")));
  EXPECT_THAT(LeafSpec::Unbounded(DType::kFloat32, {3}).Encode({1, 2}),
              StatusIs(kInvalid, HasSubstr("got 2, want 3")));
}

TEST(LeafSpecEncodeTest, ValuesAreRowMajorInABatch) {
  const LeafSpec spec = LeafSpec::Unbounded(DType::kFloat32, {2});
  EXPECT_THAT(spec.Encode({1, 2, 3, 4, 5, 6}, {3}),
              IsOkAndHolds(AllOf(TensorIs(DType::kFloat32, Shape({3, 2})),
                                 TensorElementsAre<float>(1, 2, 3, 4, 5, 6))));
  EXPECT_THAT(spec.Encode({}, {0}),
              IsOkAndHolds(TensorIs(DType::kFloat32, Shape({0, 2}))));
}

// --- One-hot and back -------------------------------------------------------

TEST(LeafSpecConvertTest, ValuesAndSpecsComeBack) {
  int tried = 0;
  for (int i = 0; i < kSpecs; ++i) {
    const LeafSpec spec = RandomLeafSpec(Rng(31), i);
    if (spec.domain != LeafSpec::Domain::kCategorical &&
        spec.domain != LeafSpec::Domain::kMultiCategorical) {
      EXPECT_THAT(spec.ToOneHotSpec(), StatusIs(kInvalid));
      continue;
    }
    RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec hot,
                              spec.ToOneHotSpec(DType::kFloat32));
    EXPECT_THAT(hot.ToCategoricalSpec(spec.dtype), IsOkAndHolds(spec));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor member,
                              spec.Random({3}, Rng(32), i));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor there,
                              spec.ToOneHot(member, DType::kFloat32));
    RILL_EXPECT_OK(hot.CheckValues("x", {3}, there));
    EXPECT_THAT(hot.ToCategorical(there, spec.dtype),
                IsOkAndHolds(BitEqualTo(member)));
    EXPECT_EQ(hot.Cardinality(), spec.Cardinality());
    ++tried;
  }
  EXPECT_GT(tried, 50);
}

TEST(LeafSpecConvertTest, ChecksItsArgument) {
  const LeafSpec spec = LeafSpec::Categorical(3);
  EXPECT_THAT(spec.ToOneHot(MakeTensor<int64_t>({1, 3}, {2})),
              StatusIs(kInvalid, HasSubstr("element 1")));
  EXPECT_THAT(spec.ToOneHot(MakeTensor<int32_t>({1}, {1})), StatusIs(kInvalid));
  EXPECT_THAT(spec.ToCategorical(MakeTensor<int64_t>({1}, {1})),
              StatusIs(kInvalid, HasSubstr("want OneHot")));
  EXPECT_THAT(
      LeafSpec::OneHot(3).ToCategorical(MakeTensor<bool>({1, 1, 0}, {3})),
      StatusIs(kInvalid, HasSubstr("one 1 among zeros")));
  EXPECT_THAT(LeafSpec::OneHot(300).ToCategoricalSpec(DType::kUInt8),
              StatusIs(kInvalid));
  const LeafSpec deep =
      LeafSpec::Categorical(2, DType::kInt64, {1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_THAT(deep.ToOneHotSpec(), StatusIs(kInvalid));
}

TEST(LeafSpecTest, OneIsOneInEveryType) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const LeafSpec spec = LeafSpec::Unbounded(static_cast<DType>(i), {2});
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor one, spec.One({3}));
    EXPECT_THAT(one, TensorIs(spec.dtype, Shape({3, 2})));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor zero, spec.Zero({3}));
    EXPECT_THAT(one, Not(BitEqualTo(zero)));
  }
  EXPECT_THAT(LeafSpec::Unbounded(DType::kBFloat16, {}).One({}),
              IsOkAndHolds(TensorElementsAre<BFloat16>(BFloat16{0x3f80})));
  EXPECT_THAT(
      LeafSpec::Unbounded(DType::kComplex64, {}).One({}),
      IsOkAndHolds(TensorElementsAre<std::complex<float>>(std::complex(1.0f))));
}

}  // namespace
}  // namespace rill
