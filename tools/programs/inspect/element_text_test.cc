// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/element_text.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/half.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::inspect {
namespace {

template <typename T>
Tensor Row(std::initializer_list<T> values) {
  return *Tensor::From<T>(absl::MakeConstSpan(values.begin(), values.size()),
                          {static_cast<int64_t>(values.size())});
}

std::string Json(const Tensor& tensor) {
  std::string json;
  RILL_EXPECT_OK(AppendJsonValues(tensor, &json));
  return json;
}

TEST(ElementTextTest, IntegersAreExactToTheirLimits) {
  EXPECT_EQ(Json(Row<int8_t>({-128, 127})), "[-128,127]");
  EXPECT_EQ(Json(Row<uint8_t>({0, 255})), "[0,255]");
  EXPECT_EQ(Json(Row<int16_t>({-32768})), "[-32768]");
  EXPECT_EQ(Json(Row<uint16_t>({65535})), "[65535]");
  EXPECT_EQ(Json(Row<int32_t>({INT32_MIN})), "[-2147483648]");
  EXPECT_EQ(Json(Row<uint32_t>({UINT32_MAX})), "[4294967295]");
  EXPECT_EQ(Json(Row<int64_t>({INT64_MIN, INT64_MAX})),
            "[-9223372036854775808,9223372036854775807]");
  EXPECT_EQ(Json(Row<uint64_t>({UINT64_MAX})), "[18446744073709551615]");
}

TEST(ElementTextTest, FloatsAreTheShortestDoublesThatReadBack) {
  EXPECT_EQ(Json(Row<double>({0.1, 1e300, -2, 5e-324})),
            "[0.1,1e+300,-2,5e-324]");
  // To a reader of doubles the nearest float is not 0.1.
  EXPECT_EQ(Json(Row<float>({0.1f, 0.5f})), "[0.10000000149011612,0.5]");
  EXPECT_EQ(Json(Row<Float16>({ToFloat16(0.1)})), "[0.0999755859375]");
  EXPECT_EQ(Json(Row<BFloat16>({ToBFloat16(1.5)})), "[1.5]");
}

TEST(ElementTextTest, WhatJsonHasNoNumberForIsAString) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Json(Row<double>({std::nan(""), inf, -inf, -0.0, 0.0})),
            R"(["NaN","Infinity","-Infinity",-0.0,0])");
  EXPECT_EQ(Json(Row<float>({-std::nanf("")})), R"(["NaN"])");
  EXPECT_EQ(Json(Row<std::complex<float>>({{1, -2}, {0.5, NAN}})),
            R"([[1,-2],[0.5,"NaN"]])");
}

TEST(ElementTextTest, BoolIsTrueOfAnyByteButZero) {
  const Tensor bytes = *Tensor::Zeros(DType::kBool, {3});
  bytes.data<uint8_t>()[1] = 1;
  bytes.data<uint8_t>()[2] = 7;
  EXPECT_EQ(Json(bytes), "[false,true,true]");
}

TEST(ElementTextTest, ViewsAreRowMajorAndNothingIsAnEmptyList) {
  const Tensor grid =
      *Tensor::From<int32_t>(absl::Span<const int32_t>({1, 2, 3, 4}), {2, 2});
  EXPECT_EQ(Json(*grid.Permute({1, 0})), "[1,3,2,4]");
  EXPECT_EQ(Json(Row<float>({})), "[]");
  EXPECT_EQ(Json(*Tensor::From<float>(absl::Span<const float>({2}), {})),
            "[2]");
}

TEST(ElementTextTest, StringsAreEscaped) {
  std::string json;
  AppendJsonString("a\"b\\c\n\x01 \xC3\xA9", &json);
  EXPECT_EQ(json, "\"a\\\"b\\\\c\\u000a\\u0001 \xC3\xA9\"");
}

TEST(ElementTextTest, SummaryLeavesNanOut) {
  RILL_ASSERT_OK_AND_ASSIGN(const Summary summary,
                            Summarize(Row<float>({3, NAN, -1, 1, 0.25f, NAN})));
  EXPECT_EQ(summary.min, "-1");
  EXPECT_EQ(summary.max, "3");
  EXPECT_EQ(summary.mean, "0.8125");
  EXPECT_EQ(summary.nans, 2);
  EXPECT_EQ(summary.first, "3 nan -1 1 ...");
}

TEST(ElementTextTest, SummaryOfPartsIsThatOfTheWhole) {
  Summaries summaries;
  for (const Tensor& part : {Row<float>({}), Row<float>({3, NAN}),
                             Row<float>({-1, 1}), Row<float>({0.25f, NAN})}) {
    RILL_ASSERT_OK(summaries.Add(part));
  }
  const Summary summary = summaries.Get();
  EXPECT_EQ(summary.min, "-1");
  EXPECT_EQ(summary.max, "3");
  EXPECT_EQ(summary.mean, "0.8125");
  EXPECT_EQ(summary.nans, 2);
  EXPECT_EQ(summary.first, "3 nan -1 1 ...");
}

TEST(ElementTextTest, SummaryOfIntegersIsExactAndOfNothingEmpty) {
  RILL_ASSERT_OK_AND_ASSIGN(const Summary large,
                            Summarize(Row<int64_t>({INT64_MAX, 0})));
  EXPECT_EQ(large.max, "9223372036854775807");
  RILL_ASSERT_OK_AND_ASSIGN(const Summary flags,
                            Summarize(Row<bool>({true, false, false, false})));
  EXPECT_EQ(flags.mean, "0.25");
  EXPECT_EQ(flags.first, "true false false false");
  for (const Tensor& tensor : {Row<float>({}), Row<float>({NAN}),
                               Row<std::complex<float>>({{1, 2}})}) {
    RILL_ASSERT_OK_AND_ASSIGN(const Summary none, Summarize(tensor));
    EXPECT_EQ(none.min + none.max + none.mean, "");
  }
}

}  // namespace
}  // namespace rill::inspect
