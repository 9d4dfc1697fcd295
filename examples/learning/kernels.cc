// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/learning/kernels.h"

#include <cmath>
#include <cstdint>

#include "Eigen/Core"
#include "absl/types/span.h"

namespace rill::learning {
namespace {

using ConstMap = Eigen::Map<const Eigen::MatrixXf>;
using Vector = Eigen::Map<Eigen::VectorXf>;
using Array = Eigen::Map<Eigen::ArrayXf>;
using ConstArray = Eigen::Map<const Eigen::ArrayXf>;

}  // namespace

void AddProduct(const Matrix<float>& a, const Matrix<float>& b,
                float* product) {
  const ConstMap left(a.data, a.rows, a.columns);
  const ConstMap right(b.data, b.rows, b.columns);
  Eigen::Map<Eigen::MatrixXf> to(product, a.is_transposed ? a.columns : a.rows,
                                 b.is_transposed ? b.rows : b.columns);
  // noalias: Eigen adds in place, without a temporary.
  if (a.is_transposed) {
    to.noalias() += left.transpose() * right;
  } else if (b.is_transposed) {
    to.noalias() += left * right.transpose();
  } else {
    to.noalias() += left * right;
  }
}

void AddProduct(const Matrix<double>& a, const Matrix<double>& b,
                double* product) {
  const auto at = [](const Matrix<double>& m, int64_t row, int64_t column) {
    return m.is_transposed ? m.data[row * m.rows + column]
                           : m.data[column * m.rows + row];
  };
  const int64_t rows = a.is_transposed ? a.columns : a.rows;
  const int64_t depth = a.is_transposed ? a.rows : a.columns;
  const int64_t columns = b.is_transposed ? b.rows : b.columns;
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t k = 0; k < depth; ++k) {
      const double factor = at(b, k, j);
      for (int64_t i = 0; i < rows; ++i) {
        product[j * rows + i] += at(a, i, k) * factor;
      }
    }
  }
}

void AddRowSums(const float* matrix, int64_t rows, int64_t columns,
                int64_t stride, float* sums) {
  const Eigen::Map<const Eigen::MatrixXf, 0, Eigen::OuterStride<>> from(
      matrix, rows, columns, Eigen::OuterStride<>(stride));
  Vector(sums, rows) += from.rowwise().sum();
}

void AddRowSums(const double* matrix, int64_t rows, int64_t columns,
                int64_t stride, double* sums) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) sums[i] += matrix[j * stride + i];
  }
}

float Dot64(const float* a, const float* b) {
  using Column = Eigen::Map<const Eigen::Matrix<float, 64, 1>>;
  return Column(a).dot(Column(b));
}

double Dot64(const double* a, const double* b) {
  double sum = 0;
  for (int i = 0; i < 64; ++i) sum += a[i] * b[i];
  return sum;
}

void Tanh(absl::Span<float> x) {
  Array array(x.data(), static_cast<int64_t>(x.size()));
  array = array.tanh();
}

void Tanh(absl::Span<double> x) {
  for (double& element : x) element = std::tanh(element);
}

void MoveByAdam(const AdamFactors& factors, absl::Span<const float> gradient,
                float* first_moment, float* second_moment, float* parameters) {
  const int64_t size = static_cast<int64_t>(gradient.size());
  const ConstArray g(gradient.data(), size);
  Array m(first_moment, size), v(second_moment, size), p(parameters, size);
  m = factors.decay1 * m + factors.gain1 * g;
  v = factors.decay2 * v + factors.gain2 * g.square();
  p -= factors.rate * m / (v.sqrt() + factors.epsilon);
}

}  // namespace rill::learning
