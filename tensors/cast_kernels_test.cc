// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/cast_kernels.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/half.h"
#include "rill/testing/instruction_sets.h"

namespace rill::tensor_internal {
namespace {

// Holds the kernel against `cast`, element by element, for every count up to
// some vectors, so that each length of the rest is met; then for all at once.
template <typename From, typename To, typename Cast>
void ExpectCasts(const std::vector<From>& in, Cast&& cast) {
  ForEachTarget([&] {
    for (size_t count = 0; count <= in.size();
         count = count < 70 || count == in.size() ? count + 1 : in.size()) {
      std::vector<To> out(count + 1);
      std::memset(static_cast<void*>(out.data()), 0x5A,
                  out.size() * sizeof(To));
      const To untouched = out.back();
      ASSERT_TRUE(CastWithVectors(DTypeOf<From>, DTypeOf<To>,
                                  reinterpret_cast<const std::byte*>(in.data()),
                                  reinterpret_cast<std::byte*>(out.data()),
                                  static_cast<int64_t>(count)));
      for (size_t i = 0; i < count; ++i) {
        const To want = cast(in[i]);
        ASSERT_EQ(std::memcmp(&out[i], &want, sizeof(To)), 0)
            << "element " << i << " of " << count;
      }
      ASSERT_EQ(std::memcmp(&out.back(), &untouched, sizeof(To)), 0);
    }
  });
}

// Every bit pattern of a 16-bit type.
template <typename T>
std::vector<T> AllOf16Bits() {
  std::vector<T> values(1 << 16);
  for (int i = 0; i < 1 << 16; ++i) values[i].bits = static_cast<uint16_t>(i);
  return values;
}

// Bit patterns at random, and those at and beside each value and middle of two
// values of the 16-bit types.
std::vector<float> HardFloats() {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               INFINITY,
                               -INFINITY,
                               std::numeric_limits<float>::denorm_min(),
                               std::numeric_limits<float>::max(),
                               std::bit_cast<float>(0x7F800001u),
                               std::bit_cast<float>(0xFFC12345u)};
  for (uint32_t high = 0; high < 1 << 16; high += 7) {
    for (const uint32_t low : {0u, 1u, 0x0FFFu, 0x1000u, 0x1001u, 0x7FFFu,
                               0x8000u, 0x8001u, 0xFFFFu}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  for (const Float16 half : AllOf16Bits<Float16>()) {
    const auto value = static_cast<float>(ToDouble(half));
    if (!std::isfinite(value)) continue;
    const float middle = value + std::ldexp(value, -11);
    values.push_back(middle);
    values.push_back(std::nextafter(middle, 0.0f));
    values.push_back(std::nextafter(middle, 2 * middle));
  }
  const Rng rng(1);
  for (uint32_t i = 0; i < 20'000; ++i) {
    values.push_back(
        std::bit_cast<float>(static_cast<uint32_t>(rng.Bits64(0, i))));
  }
  return values;
}

TEST(CastKernelsTest, FloatToFloat16) {
  ExpectCasts<float, Float16>(HardFloats(),
                              [](float x) { return ToFloat16(x); });
}

TEST(CastKernelsTest, FloatToBFloat16) {
  ExpectCasts<float, BFloat16>(HardFloats(),
                               [](float x) { return ToBFloat16(x); });
}

TEST(CastKernelsTest, Float16ToFloat) {
  ExpectCasts<Float16, float>(AllOf16Bits<Float16>(), [](Float16 x) {
    return static_cast<float>(ToDouble(x));
  });
}

TEST(CastKernelsTest, BFloat16ToFloat) {
  ExpectCasts<BFloat16, float>(AllOf16Bits<BFloat16>(), [](BFloat16 x) {
    return static_cast<float>(ToDouble(x));
  });
}

TEST(CastKernelsTest, FloatAndDouble) {
  std::vector<double> doubles;
  for (const float x : HardFloats()) {
    // NaNs keep what they carry in different ways.
    if (std::isnan(x)) continue;
    doubles.push_back(x);
    doubles.push_back(x * (1 + 0x1p-24));
    doubles.push_back(x * (1 + 0x1p-25));
  }
  doubles.insert(doubles.end(), {1e300, -1e-300, 0x1.fffffefp127});
  ExpectCasts<double, float>(doubles,
                             [](double x) { return static_cast<float>(x); });
  std::vector<float> floats;
  for (const float x : HardFloats()) {
    if (!std::isnan(x)) floats.push_back(x);
  }
  ExpectCasts<float, double>(floats,
                             [](float x) { return static_cast<double>(x); });
}

template <typename T>
void ExpectIntegerCasts() {
  const Rng rng(2);
  std::vector<T> values = {0, 1, std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max()};
  for (uint32_t i = 0; i < 5'000; ++i) {
    values.push_back(static_cast<T>(rng.Bits64(0, i)));
  }
  ExpectCasts<T, float>(values, [](T x) { return static_cast<float>(x); });
}

TEST(CastKernelsTest, IntegersToFloat) {
  ExpectIntegerCasts<uint8_t>();
  ExpectIntegerCasts<int8_t>();
  ExpectIntegerCasts<int16_t>();
  ExpectIntegerCasts<int32_t>();
}

TEST(CastKernelsTest, BytesOfABoolOtherThanZeroAreTrue) {
  std::vector<uint8_t> bytes(256);
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  std::vector<float> out(bytes.size());
  ForEachTarget([&] {
    ASSERT_TRUE(CastWithVectors(DType::kBool, DType::kFloat32,
                                reinterpret_cast<std::byte*>(bytes.data()),
                                reinterpret_cast<std::byte*>(out.data()), 256));
    for (int i = 0; i < 256; ++i) EXPECT_EQ(out[i], i == 0 ? 0 : 1) << i;
  });
}

TEST(CastKernelsTest, OtherPairsAreLeftToTheCaller) {
  std::byte byte{1};
  EXPECT_FALSE(
      CastWithVectors(DType::kInt64, DType::kFloat32, &byte, &byte, 0));
  EXPECT_FALSE(
      CastWithVectors(DType::kFloat32, DType::kInt32, &byte, &byte, 0));
  EXPECT_FALSE(
      CastWithVectors(DType::kFloat64, DType::kFloat16, &byte, &byte, 0));
}

}  // namespace
}  // namespace rill::tensor_internal
