// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/fill_value.h"

#include <cmath>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::transforms_internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FillValueTest, StandsInEveryElement) {
  EXPECT_THAT(FillValue("F", "k", 2.5, DType::kFloat32, {2, 1}),
              IsOkAndHolds(TensorElementsAre<float>(2.5f, 2.5f)));
  EXPECT_THAT(FillValue("F", "k", -3, DType::kInt16, {2}),
              IsOkAndHolds(TensorElementsAre<int16_t>(-3, -3)));
  EXPECT_THAT(FillValue("F", "k", 1, DType::kBool, {}),
              IsOkAndHolds(TensorElementsAre<bool>(true)));
  EXPECT_THAT(FillValue("F", "k", std::nan(""), DType::kFloat64, {1}),
              IsOkAndHolds(TensorElementsAre<double>(std::nan(""))));
}

TEST(FillValueTest, ZeroIsOfEveryDType) {
  for (int i = 0; i < kNumDTypes; ++i) {
    RILL_EXPECT_OK(FillValue("F", "k", 0, static_cast<DType>(i), {3}));
  }
}

TEST(FillValueTest, WhatTheDTypeDoesNotHaveIsAnError) {
  for (const double bad : {std::nan(""), 0.5, 256.0, -1.0}) {
    EXPECT_THAT(FillValue("F", "a/b", bad, DType::kUInt8, {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("F: \"a/b\""), HasSubstr("uint8"))));
  }
  EXPECT_THAT(FillValue("F", "k", 1, DType::kComplex64, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FillValueTest, DomainIsKeptWhereItHasTheValue) {
  const LeafSpec spec = LeafSpec::Bounded(DType::kFloat32, {2}, -1, 1);
  EXPECT_THAT(WithFillValue("F", "k", 0, spec), IsOkAndHolds(spec));
  const LeafSpec wide = LeafSpec::Unbounded(DType::kFloat32, {2});
  EXPECT_THAT(WithFillValue("F", "k", 2, spec), IsOkAndHolds(wide));
  EXPECT_THAT(WithFillValue("F", "k", std::nan(""), spec), IsOkAndHolds(wide));
}

}  // namespace
}  // namespace rill::transforms_internal
