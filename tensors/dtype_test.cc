// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/dtype.h"

#include <complex>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DTypeTest, NamesAreThoseOfNumPyAndReadBack) {
  EXPECT_EQ(DTypeName(DType::kBool), "bool");
  EXPECT_EQ(DTypeName(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(DTypeName(DType::kComplex128), "complex128");
  std::set<std::string> names;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    names.insert(std::string(DTypeName(dtype)));
    EXPECT_THAT(DTypeFromName(DTypeName(dtype)), IsOkAndHolds(dtype));
  }
  EXPECT_EQ(names.size(), kNumDTypes);
}

TEST(DTypeTest, UnknownNamesListTheKnownOnes) {
  EXPECT_THAT(DTypeFromName("float"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("unknown dtype: got \"float\""),
                             HasSubstr("bfloat16, float32"))));
  EXPECT_THAT(DTypeFromName(""), IsInvalidArgument());
}

TEST(DTypeTest, TypesFromElsewhereAreRefusedByName) {
  for (const char* name :
       {"qint8", "quint4x2", "complex32", "float8_e4m3fn", "float8_e5m2"}) {
    EXPECT_THAT(DTypeFromName(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(name), HasSubstr("not supported"))));
  }
}

template <typename T>
void ExpectType(const char* name, bool is_float, bool is_integer) {
  EXPECT_EQ(DTypeName(DTypeOf<T>), name);
  EXPECT_EQ(DTypeSize(DTypeOf<T>), static_cast<int64_t>(sizeof(T))) << name;
  EXPECT_EQ(IsFloatingPoint(DTypeOf<T>), is_float) << name;
  EXPECT_EQ(IsInteger(DTypeOf<T>), is_integer) << name;
}

TEST(DTypeTest, TraitsAgreeWithSizesAndGroups) {
  ExpectType<bool>("bool", false, false);
  ExpectType<uint8_t>("uint8", false, true);
  ExpectType<int8_t>("int8", false, true);
  ExpectType<int16_t>("int16", false, true);
  ExpectType<int32_t>("int32", false, true);
  ExpectType<int64_t>("int64", false, true);
  ExpectType<Float16>("float16", true, false);
  ExpectType<BFloat16>("bfloat16", true, false);
  ExpectType<float>("float32", true, false);
  ExpectType<double>("float64", true, false);
  ExpectType<uint16_t>("uint16", false, true);
  ExpectType<uint32_t>("uint32", false, true);
  ExpectType<uint64_t>("uint64", false, true);
  ExpectType<std::complex<float>>("complex64", false, false);
  ExpectType<std::complex<double>>("complex128", false, false);
}

}  // namespace
}  // namespace rill
