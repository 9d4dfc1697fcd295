// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/learning/kernels.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/aligned_vector.h"

namespace rill::learning {
namespace {

template <typename Scalar>
AlignedVector<Scalar> Centred(uint64_t seed, int64_t count) {
  AlignedVector<Scalar> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<Scalar>(2 * Rng(seed).UniformDouble(i, 0) - 1);
  }
  return values;
}

template <typename Scalar>
class KernelsTest : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelsTest, Scalars);

TYPED_TEST(KernelsTest, ProductIsAddedToWhatIsThere) {
  for (int64_t rows : {1, 5, 64}) {
    for (int64_t depth : {1, 4, 17, 64}) {
      for (int64_t columns : {0, 1, 2, 33}) {
        // The same product by each way to store its operands.
        const auto a = Centred<TypeParam>(1, rows * depth);
        const auto b = Centred<TypeParam>(2, depth * columns);
        AlignedVector<TypeParam> a_turned(a.size()), b_turned(b.size());
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t k = 0; k < depth; ++k) {
            a_turned[i * depth + k] = a[k * rows + i];
          }
        }
        for (int64_t k = 0; k < depth; ++k) {
          for (int64_t j = 0; j < columns; ++j) {
            b_turned[k * columns + j] = b[j * depth + k];
          }
        }
        const Matrix<TypeParam> left = {a.data(), rows, depth};
        const Matrix<TypeParam> right = {b.data(), depth, columns};
        auto plain = Centred<TypeParam>(3, rows * columns);
        const auto before = plain;
        auto left_turned = before, right_turned = before;
        AddProduct(left, right, plain.data());
        AddProduct(Transposed<TypeParam>({a_turned.data(), depth, rows}), right,
                   left_turned.data());
        AddProduct(left,
                   Transposed<TypeParam>({b_turned.data(), columns, depth}),
                   right_turned.data());
        for (int64_t i = 0; i < rows * columns; ++i) {
          double sum = before[i];
          for (int64_t k = 0; k < depth; ++k) {
            sum += static_cast<double>(a[k * rows + i % rows]) *
                   b[i / rows * depth + k];
          }
          // Sums of at most 64 products, each right to 6e-8.
          EXPECT_NEAR(plain[i], sum, 1e-5);
          EXPECT_NEAR(left_turned[i], sum, 1e-5);
          EXPECT_NEAR(right_turned[i], sum, 1e-5);
        }
      }
    }
  }
}

TYPED_TEST(KernelsTest, RowSumsSkipWhatLiesBetweenTheColumns) {
  constexpr int64_t kStride = 48, kColumns = 9;
  const auto matrix = Centred<TypeParam>(4, kStride * kColumns);
  for (int64_t rows : {1, 6, 32}) {
    auto sums = Centred<TypeParam>(5, rows);
    const auto before = sums;
    AddRowSums(matrix.data(), rows, kColumns, kStride, sums.data());
    for (int64_t i = 0; i < rows; ++i) {
      double sum = before[i];
      for (int64_t j = 0; j < kColumns; ++j) sum += matrix[j * kStride + i];
      EXPECT_NEAR(sums[i], sum, 1e-5);
    }
  }
}

TYPED_TEST(KernelsTest, DotIsOf64Elements) {
  const auto a = Centred<TypeParam>(6, 65), b = Centred<TypeParam>(7, 65);
  double sum = 0;
  for (int i = 0; i < 64; ++i) sum += static_cast<double>(a[i]) * b[i];
  EXPECT_NEAR(Dot64(a.data(), b.data()), sum, 1e-5);
}

TYPED_TEST(KernelsTest, TanhIsThatOfTheStandardLibrary) {
  std::vector<TypeParam> x;
  for (int i = -100; i <= 100; ++i) x.push_back(static_cast<TypeParam>(i) / 8);
  const std::vector<TypeParam> before = x;
  Tanh(absl::MakeSpan(x));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], std::tanh(before[i]), 1e-6) << before[i];
  }
}

}  // namespace
}  // namespace rill::learning
