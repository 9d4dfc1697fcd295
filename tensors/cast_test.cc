// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

TEST(CastTest, FloatsTruncateTowardsZero) {
  const Tensor t = MakeTensor<float>({1.9f, -1.9f, 300.0f, 0.0f}, {4});
  EXPECT_THAT(Cast(t, DType::kInt32),
              IsOkAndHolds(TensorElementsAre<int32_t>(1, -1, 300, 0)));
  EXPECT_THAT(Cast(t, DType::kUInt8),
              IsOkAndHolds(TensorElementsAre<uint8_t>(1, 255, 44, 0)));
  EXPECT_THAT(Cast(t, DType::kFloat64),
              IsOkAndHolds(TensorElementsAre<double>(1.9f, -1.9f, 300, 0)));
}

TEST(CastTest, WhatDoesNotFitInInt64IsItsLowestValue) {
  const Tensor t = MakeTensor<double>({INFINITY, -INFINITY, NAN, 1e30}, {4});
  EXPECT_THAT(Cast(t, DType::kInt64), IsOkAndHolds(TensorElementsAre<int64_t>(
                                          kLowest, kLowest, kLowest, kLowest)));
  EXPECT_THAT(Cast(t, DType::kInt32),
              IsOkAndHolds(TensorElementsAre<int32_t>(0, 0, 0, 0)));
}

TEST(CastTest, IntegersWrap) {
  EXPECT_THAT(Cast(MakeTensor<int64_t>({256, -1, 128}, {3}), DType::kInt8),
              IsOkAndHolds(TensorElementsAre<int8_t>(0, -1, -128)));
}

TEST(CastTest, BoolIsWhetherNotZero) {
  EXPECT_THAT(Cast(MakeTensor<float>({0, -0.0f, 0.5f, NAN}, {4}), DType::kBool),
              IsOkAndHolds(TensorElementsAre<bool>(false, false, true, true)));
  EXPECT_THAT(Cast(MakeTensor<int32_t>({0, 256}, {2}), DType::kBool),
              IsOkAndHolds(TensorElementsAre<bool>(false, true)));
  EXPECT_THAT(Cast(MakeTensor<bool>({true, false}, {2}), DType::kFloat32),
              IsOkAndHolds(TensorElementsAre<float>(1, 0)));
}

TEST(CastTest, HalvesRoundOnce) {
  const Tensor t = MakeTensor<double>({1.0 + 0x1p-11 + 0x1p-40, 1e6}, {2});
  EXPECT_THAT(Cast(t, DType::kFloat16), IsOkAndHolds(TensorElementsAre<Float16>(
                                            Float16{0x3c01}, Float16{0x7c00})));
  EXPECT_THAT(Cast(MakeTensor<BFloat16>({{0x3fc0}}, {1}), DType::kFloat32),
              IsOkAndHolds(TensorElementsAre<float>(1.5f)));
}

TEST(CastTest, LargeIntegersToFloatRoundOnce) {
  // By way of double this would round to a tie and then down to even.
  const int64_t value = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_THAT(Cast(MakeTensor<int64_t>({value}, {1}), DType::kFloat32),
              IsOkAndHolds(TensorElementsAre<float>(0x1.000002p60f)));
}

TEST(CastTest, KeepsShapeAndReadsStrides) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned,
                            Iota<int32_t>({2, 2}).Permute({1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor cast, Cast(turned, DType::kFloat32));
  EXPECT_THAT(cast, AllOf(TensorIs(DType::kFloat32, {2, 2}),
                          TensorElementsAre<float>(0, 2, 1, 3)));
}

TEST(CastTest, SameDTypeSharesBytes) {
  const Tensor t = Iota<float>({2});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor same, Cast(t, DType::kFloat32));
  EXPECT_EQ(same.raw_data(), t.raw_data());
  EXPECT_THAT(Cast(Tensor(), DType::kInt64),
              IsOkAndHolds(TensorIs(DType::kInt64, {0})));
}

TEST(CastTest, TypesWithoutArithmeticAndDevicesAreRefused) {
  EXPECT_THAT(Cast(Iota<uint32_t>({2}), DType::kInt64),
              IsInvalidArgument("uint32 to int64"));
  EXPECT_THAT(Cast(Iota<float>({2}), DType::kComplex64), IsInvalidArgument());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there,
                            Iota<float>({2}).To(Device::Fake()));
  EXPECT_THAT(Cast(there, DType::kInt64),
              IsInvalidArgument("fake:0, want host memory"));
}

// All pairs of types that have arithmetic agree on small whole numbers.
TEST(CastTest, SmallNumbersSurviveEveryPair) {
  const Tensor values = MakeTensor<int32_t>({0, 1, 2, 100}, {4});
  for (int from = 1; from <= static_cast<int>(DType::kFloat64); ++from) {
    for (int to = 1; to <= static_cast<int>(DType::kFloat64); ++to) {
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor a,
                                Cast(values, static_cast<DType>(from)));
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor b,
                                Cast(a, static_cast<DType>(to)));
      EXPECT_THAT(Cast(b, DType::kInt32), IsOkAndHolds(BitEqualTo(values)))
          << static_cast<DType>(from) << " to " << static_cast<DType>(to);
    }
  }
}

}  // namespace
}  // namespace rill
