// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/mlp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "Eigen/Core"
#include "absl/log/check.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/standard_normal.h"

namespace rill::ppo {
namespace {

// A row-major [B, F] array is a column-major F x B matrix: one column a sample.
// The hidden size is a constant, so that Eigen knows each column's alignment.
template <typename Scalar>
struct Types {
  static constexpr int kHid = Mlp<Scalar>::kHidden;
  using Vector = Eigen::Matrix<Scalar, kHid, 1>;
  using Square = Eigen::Matrix<Scalar, kHid, kHid>;
  using Columns = Eigen::Matrix<Scalar, kHid, Eigen::Dynamic>;
  using Any = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
  using AnyVector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;
};

template <typename Matrix>
using ConstMap = Eigen::Map<const Matrix, Eigen::Aligned64>;
template <typename Matrix>
using MutableMap = Eigen::Map<Matrix, Eigen::Aligned64>;

// `count` orthonormal vectors of `size` >= count, by Gram and Schmidt, twice:
// once leaves errors of the condition number.
std::vector<std::vector<double>> Orthonormal(const Rng& rng, uint64_t stream,
                                             uint32_t first_draw, int64_t count,
                                             int64_t size) {
  std::vector<std::vector<double>> vectors;
  uint32_t draw = first_draw;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<double> v(size);
    for (double& x : v) x = StandardNormal(rng.Bits(stream, draw++));
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::vector<double>& u : vectors) {
        double dot = 0;
        for (int64_t k = 0; k < size; ++k) dot += u[k] * v[k];
        for (int64_t k = 0; k < size; ++k) v[k] -= dot * u[k];
      }
    }
    double norm = 0;
    for (double x : v) norm += x * x;
    for (double& x : v) x /= std::sqrt(norm);
    vectors.push_back(std::move(v));
  }
  return vectors;
}

// Writes a 64 x columns matrix whose shorter side is orthogonal. Such a layer
// keeps the lengths of what passes through it and of gradients, so that tanh
// does not saturate at the beginning.
template <typename Scalar>
void FillOrthogonal(const Rng& rng, uint64_t stream, uint32_t first_draw,
                    double gain, int64_t columns, absl::Span<Scalar> to) {
  constexpr int64_t kRows = Mlp<Scalar>::kHidden;
  const bool wide = columns > kRows;
  const auto vectors = Orthonormal(
      rng, stream, first_draw, wide ? kRows : columns, wide ? columns : kRows);
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < kRows; ++r) {
      to[c * kRows + r] =
          static_cast<Scalar>(gain * (wide ? vectors[r][c] : vectors[c][r]));
    }
  }
}

}  // namespace

template <typename Scalar>
Mlp<Scalar>::Mlp(int64_t inputs, int64_t outputs, int64_t max_batch)
    : inputs_(inputs), outputs_(outputs), max_batch_(max_batch) {
  CHECK_GT(inputs, 0);
  CHECK_GT(outputs, 0);
  CHECK_GT(max_batch, 0);
  input_.resize(max_batch * inputs);
  output_.resize(max_batch * outputs);
  for (Array* layer : {&hidden1_, &hidden2_, &delta1_, &delta2_}) {
    layer->resize(max_batch * kHidden);
  }
}

template <typename Scalar>
int64_t Mlp<Scalar>::num_parameters() const {
  return RoundUpToBlock(b3() + outputs_);
}

template <typename Scalar>
void Mlp<Scalar>::Initialize(const Rng& rng, uint64_t stream,
                             double output_gain,
                             absl::Span<Scalar> parameters) const {
  CHECK_EQ(static_cast<int64_t>(parameters.size()), num_parameters());
  std::fill(parameters.begin(), parameters.end(), Scalar{0});
  const auto fill = [&](int64_t at, int64_t columns, double gain) {
    // Draws are numbered by the place of the weights: no two matrices share
    // one.
    FillOrthogonal<Scalar>(rng, stream, static_cast<uint32_t>(at), gain,
                           columns, parameters.subspan(at, kHidden * columns));
  };
  fill(0, inputs_, std::sqrt(2.0));
  fill(w2(), kHidden, std::sqrt(2.0));
  fill(w3(), outputs_, output_gain);
}

template <typename Scalar>
void Mlp<Scalar>::Forward(absl::Span<const Scalar> parameters,
                          absl::Span<const Scalar> input,
                          absl::Span<Scalar> output) {
  using T = Types<Scalar>;
  batch_ = static_cast<int64_t>(input.size()) / inputs_;
  CHECK_LE(batch_, max_batch_);
  CHECK_EQ(static_cast<int64_t>(input.size()), batch_ * inputs_);
  CHECK_EQ(static_cast<int64_t>(output.size()), batch_ * outputs_);
  CHECK_EQ(static_cast<int64_t>(parameters.size()), num_parameters());
  // A copy at a known alignment, which Backward reads too.
  std::copy(input.begin(), input.end(), input_.begin());

  const Scalar* flat = parameters.data();
  const ConstMap<typename T::Columns> w1(flat, kHidden, inputs_);
  const ConstMap<typename T::Vector> bias1(flat + b1());
  const ConstMap<typename T::Square> weights2(flat + w2());
  const ConstMap<typename T::Vector> bias2(flat + b2());
  const ConstMap<typename T::Columns> weights3(flat + w3(), kHidden, outputs_);
  const ConstMap<typename T::AnyVector> bias3(flat + b3(), outputs_);
  const ConstMap<typename T::Any> x(input_.data(), inputs_, batch_);
  MutableMap<typename T::Columns> h1(hidden1_.data(), kHidden, batch_);
  MutableMap<typename T::Columns> h2(hidden2_.data(), kHidden, batch_);
  MutableMap<typename T::Any> y(output_.data(), outputs_, batch_);

  h1.noalias() = w1 * x;
  h1 = (h1.colwise() + bias1).array().tanh().matrix();
  h2.noalias() = weights2 * h1;
  h2 = (h2.colwise() + bias2).array().tanh().matrix();
  y.noalias() = weights3.transpose() * h2;
  y.colwise() += bias3;
  // The caller's span may have any alignment.
  std::copy_n(output_.begin(), output.size(), output.begin());
}

template <typename Scalar>
void Mlp<Scalar>::Backward(absl::Span<const Scalar> parameters,
                           absl::Span<const Scalar> output_gradient,
                           absl::Span<Scalar> gradient) {
  using T = Types<Scalar>;
  CHECK_EQ(static_cast<int64_t>(output_gradient.size()), batch_ * outputs_);
  CHECK_EQ(static_cast<int64_t>(parameters.size()), num_parameters());
  CHECK_EQ(static_cast<int64_t>(gradient.size()), num_parameters());
  // output_ is free by now: its values are with the caller.
  std::copy(output_gradient.begin(), output_gradient.end(), output_.begin());

  const Scalar* flat = parameters.data();
  const ConstMap<typename T::Square> weights2(flat + w2());
  const ConstMap<typename T::Columns> weights3(flat + w3(), kHidden, outputs_);
  const ConstMap<typename T::Any> x(input_.data(), inputs_, batch_);
  const ConstMap<typename T::Columns> h1(hidden1_.data(), kHidden, batch_);
  const ConstMap<typename T::Columns> h2(hidden2_.data(), kHidden, batch_);
  const ConstMap<typename T::Any> dy(output_.data(), outputs_, batch_);
  MutableMap<typename T::Columns> d1(delta1_.data(), kHidden, batch_);
  MutableMap<typename T::Columns> d2(delta2_.data(), kHidden, batch_);
  Scalar* out = gradient.data();
  MutableMap<typename T::Columns> dw1(out, kHidden, inputs_);
  MutableMap<typename T::Vector> db1(out + b1());
  MutableMap<typename T::Square> dw2(out + w2());
  MutableMap<typename T::Vector> db2(out + b2());
  MutableMap<typename T::Columns> dw3(out + w3(), kHidden, outputs_);
  MutableMap<typename T::AnyVector> db3(out + b3(), outputs_);
  // The padding behind b3, which nothing below writes.
  std::fill(gradient.begin() + b3(), gradient.end(), Scalar{0});

  dw3.noalias() = h2 * dy.transpose();
  db3 = dy.rowwise().sum();
  d2.noalias() = weights3 * dy;
  d2.array() *= Scalar{1} - h2.array().square();  // tanh' = 1 - tanh^2
  dw2.noalias() = d2 * h1.transpose();
  db2 = d2.rowwise().sum();
  d1.noalias() = weights2.transpose() * d2;
  d1.array() *= Scalar{1} - h1.array().square();
  dw1.noalias() = d1 * x.transpose();
  db1 = d1.rowwise().sum();
}

template class Mlp<float>;
template class Mlp<double>;

}  // namespace rill::ppo
