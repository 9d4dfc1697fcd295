// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/scalar.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ScalarTest, Example) {
  EXPECT_THAT(Full(DType::kUInt8, {2}, 7),
              IsOkAndHolds(TensorElementsAre<uint8_t>(7, 7)));
  EXPECT_THAT(Full(DType::kUInt8, {2}, 256),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got 256"), HasSubstr("uint8"))));
}

TEST(ScalarTest, IntegersHoldWhatIsExact) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Full(DType::kInt64, {}, kMin),
              IsOkAndHolds(TensorElementsAre<int64_t>(kMin)));
  EXPECT_THAT(Full(DType::kInt64, {}, -0x1p63),
              IsOkAndHolds(TensorElementsAre<int64_t>(kMin)));
  EXPECT_THAT(Full(DType::kUInt64, {}, ~uint64_t{0}),
              IsOkAndHolds(TensorElementsAre<uint64_t>(~uint64_t{0})));
  EXPECT_THAT(Full(DType::kInt8, {3}, -128.0),
              IsOkAndHolds(TensorElementsAre<int8_t>(-128, -128, -128)));
  EXPECT_THAT(Full(DType::kBool, {}, 1.0),
              IsOkAndHolds(TensorElementsAre<bool>(true)));
  EXPECT_THAT(Full(DType::kInt32, {}, true),
              IsOkAndHolds(TensorElementsAre<int32_t>(1)));
  for (const Scalar& wrong :
       {Scalar(0.5), Scalar(NAN), Scalar(INFINITY), Scalar(0x1p63),
        Scalar(-0x1p64), Scalar(~uint64_t{0})}) {
    EXPECT_FALSE(Full(DType::kInt64, {}, wrong).ok()) << wrong.ToString();
  }
  EXPECT_FALSE(Full(DType::kBool, {}, 2).ok());
  EXPECT_FALSE(Full(DType::kUInt8, {}, -1).ok());
}

TEST(ScalarTest, FloatsRoundOnceAndStayFinite) {
  EXPECT_THAT(Full(DType::kFloat32, {}, 0.1),
              IsOkAndHolds(TensorElementsAre<float>(0.1f)));
  EXPECT_THAT(Full(DType::kFloat32, {}, NAN),
              IsOkAndHolds(TensorElementsAre<float>(NAN)));
  EXPECT_THAT(Full(DType::kFloat16, {}, -INFINITY), IsOk());
  EXPECT_THAT(Full(DType::kFloat32, {}, (int64_t{1} << 24) + 1),
              IsOkAndHolds(TensorElementsAre<float>(0x1p24f)));
  EXPECT_THAT(Full(DType::kComplex64, {}, 2),
              IsOkAndHolds(TensorElementsAre<std::complex<float>>(2.0f)));
  EXPECT_FALSE(Full(DType::kFloat32, {}, 1e300).ok());
  EXPECT_FALSE(Full(DType::kFloat16, {}, 65536).ok());
  EXPECT_FALSE(Full(DType::kComplex64, {}, 1e300).ok());
}

TEST(ScalarTest, FullOfNoElements) {
  EXPECT_THAT(Full(DType::kFloat32, {0, 3}, 1),
              IsOkAndHolds(TensorIs(DType::kFloat32, {0, 3})));
}

}  // namespace
}  // namespace rill::ops
