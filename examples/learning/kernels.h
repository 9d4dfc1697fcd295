// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_LEARNING_KERNELS_H_
#define RILL_EXAMPLES_LEARNING_KERNELS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace rill::learning {

// The loops that networks and optimizer spend their time in. Only kernels.cc
// includes Eigen, which takes a compiler seconds a file.
//
// Shapes: matrices are column by column. Arrays are as long as shapes say;
//   nothing checks that. No two of a call overlap.
// Numerics: float sums have an order that the shapes and the build fix.
//   AddRowSums wants sums at a multiple of 64 bytes (AlignedVector) for that.
//   Double is for tests of gradients: plain loops, slow.
// Pure functions.

template <typename Scalar>
struct Matrix {
  const Scalar* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  bool is_transposed = false;  // The operand is the transpose of all this.
};

template <typename Scalar>
Matrix<Scalar> Transposed(Matrix<Scalar> matrix) {
  matrix.is_transposed = !matrix.is_transposed;
  return matrix;
}

// product += a b. At most one of them is transposed.
void AddProduct(const Matrix<float>& a, const Matrix<float>& b, float* product);
void AddProduct(const Matrix<double>& a, const Matrix<double>& b,
                double* product);

// sums[i] += the sum of row i. Columns are `stride` elements apart.
void AddRowSums(const float* matrix, int64_t rows, int64_t columns,
                int64_t stride, float* sums);
void AddRowSums(const double* matrix, int64_t rows, int64_t columns,
                int64_t stride, double* sums);

// The sum of a[i] b[i] of 64 elements.
float Dot64(const float* a, const float* b);
double Dot64(const double* a, const double* b);

// x = tanh(x)
void Tanh(absl::Span<float> x);
void Tanh(absl::Span<double> x);

// One step of Adam, its corrections and clip as factors (adam.cc):
//   m = decay1 m + gain1 g,  v = decay2 v + gain2 g^2
//   p -= rate m / (sqrt(v) + epsilon)
struct AdamFactors {
  float decay1, gain1, decay2, gain2, rate, epsilon;
};
void MoveByAdam(const AdamFactors& factors, absl::Span<const float> gradient,
                float* first_moment, float* second_moment, float* parameters);

}  // namespace rill::learning

#endif  // RILL_EXAMPLES_LEARNING_KERNELS_H_
