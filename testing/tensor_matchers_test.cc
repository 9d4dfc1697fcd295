// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/tensor_matchers.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StringMatchResultListener;

template <typename T>
Tensor Make(std::vector<T> values, Shape shape) {
  return *Tensor::From(absl::Span<const T>(values), shape);
}

// The text of a failing EXPECT_THAT about the value.
template <typename Matcher, typename Value>
std::string Explain(const Matcher& matcher, const Value& value) {
  StringMatchResultListener listener;
  EXPECT_FALSE(matcher.MatchAndExplain(value, &listener));
  return listener.str();
}

TEST(TensorIsTest, NeedsDTypeAndShape) {
  const Tensor t = Make<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(t, TensorIs(DType::kFloat32, {2, 3}));
  EXPECT_THAT(t, Not(TensorIs(DType::kFloat64, {2, 3})));
  EXPECT_THAT(Explain(TensorIs(DType::kFloat32, {3, 2}), t),
              HasSubstr("float32[2, 3]"));
}

TEST(TensorElementsAreTest, ReadsRowMajorThroughStrides) {
  const Tensor t = Make<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(t, TensorElementsAre<int32_t>(1, 2, 3, 4, 5, 6));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned, t.Permute({1, 0}));
  EXPECT_THAT(turned, TensorElementsAre<int32_t>(1, 4, 2, 5, 3, 6));
}

TEST(TensorElementsAreTest, NamesTheFirstDifference) {
  const Tensor t = Make<float>({1, 2.5, 3}, {3});
  EXPECT_THAT(Explain(TensorElementsAre<float>(1, 2, 4), t),
              HasSubstr("element 1 (row-major) is 2.5, want 2"));
  EXPECT_THAT(Explain(TensorElementsAre<float>(1, 2.5), t),
              HasSubstr("3 elements, want 2"));
  EXPECT_THAT(Explain(TensorElementsAre<double>(1, 2.5, 3), t),
              HasSubstr("float32"));
}

TEST(TensorElementsAreTest, NaNEqualsNaNAndZeroEqualsMinusZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor t = Make<float>({nan, -0.0f}, {2});
  EXPECT_THAT(t, TensorElementsAre<float>(nan, 0.0f));
  EXPECT_THAT(t, Not(TensorElementsAre<float>(0.0f, 0.0f)));
}

TEST(TensorElementsAreTest, ReadsDevices) {
  const Tensor t = Make<int64_t>({7, 8}, {2});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, t.To(Device::Fake()));
  EXPECT_THAT(there, TensorElementsAre<int64_t>(7, 8));
  EXPECT_THAT(there, Not(TensorElementsAre<int64_t>(7, 9)));
}

TEST(TensorNearTest, CountsRepresentableValues) {
  const float next = std::nextafter(1.0f, 2.0f);
  const Tensor want = Make<float>({1.0f, -1.0f, 0.0f}, {3});
  const Tensor got = Make<float>(
      {std::nextafter(next, 2.0f), -next, -std::nextafter(0.0f, 1.0f)}, {3});
  EXPECT_THAT(got, TensorNear(want, 2));
  EXPECT_THAT(Explain(TensorNear(want, 1), got), HasSubstr("2 ulp apart"));
}

TEST(TensorNearTest, HandlesExtremes) {
  const double largest = std::numeric_limits<double>::max();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor plus = Make<double>({largest}, {1});
  const Tensor minus = Make<double>({-largest}, {1});
  EXPECT_THAT(plus,
              Not(TensorNear(minus, std::numeric_limits<int64_t>::max())));
  EXPECT_THAT(Make<double>({nan}, {1}),
              Not(TensorNear(plus, std::numeric_limits<int64_t>::max())));
  EXPECT_THAT(Make<double>({nan}, {1}),
              TensorNear(Make<double>({nan}, {1}), 0));
}

TEST(TensorNearTest, HalvesAndIntegers) {
  const Tensor a = Make<Float16>({{0x3c00}, {0x8001}}, {2});
  const Tensor b = Make<Float16>({{0x3c01}, {0x0001}}, {2});
  EXPECT_THAT(a, TensorNear(b, 2));
  EXPECT_THAT(a, Not(TensorNear(b, 1)));
  EXPECT_THAT(Make<int32_t>({1}, {1}),
              Not(TensorNear(Make<int32_t>({2}, {1}), 5)));
}

TEST(BitEqualToTest, TellsBitsApart) {
  const Tensor zero = Make<float>({0.0f}, {1});
  const Tensor minus_zero = Make<float>({-0.0f}, {1});
  EXPECT_THAT(zero, BitEqualTo(zero));
  EXPECT_THAT(Explain(BitEqualTo(minus_zero), zero), HasSubstr("bits differ"));
  EXPECT_THAT(Explain(BitEqualTo(Make<float>({1}, {1})), zero),
              HasSubstr("element 0"));
  EXPECT_THAT(Explain(BitEqualTo(Make<float>({0}, {1, 1})), zero),
              HasSubstr("float32[1]"));
}

TEST(BitEqualToTest, ComparesDictionaries) {
  TensorDict a({1});
  RILL_ASSERT_OK(a.Set("next/reward", Make<float>({1}, {1, 1})));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict b, a.Clone());
  EXPECT_THAT(a, BitEqualTo(b));
  b.Find("next/reward")->data<float>()[0] = 2;
  EXPECT_THAT(
      Explain(BitEqualTo(b), a),
      HasSubstr("\"next/reward\" differs first at [0, 0]: got 1, want 2"));
}

TEST(HasKeysTest, NamesMissingAndExtraKeys) {
  TensorDict dict({1});
  RILL_ASSERT_OK(dict.Set("a", Make<float>({1}, {1})));
  RILL_ASSERT_OK(dict.Set("next/b", Make<float>({1}, {1})));
  EXPECT_THAT(dict, HasKeys("next/b", "a"));
  EXPECT_THAT(Explain(HasKeys("a", "c"), dict),
              HasSubstr("missing are {c} and too many {next/b}"));
}

}  // namespace
}  // namespace rill
