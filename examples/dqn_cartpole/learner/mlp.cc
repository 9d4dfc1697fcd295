// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/learner/mlp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "Eigen/Core"
#include "absl/log/check.h"
#include "absl/types/span.h"

namespace rill::dqn_cartpole {
namespace {

// A row-major [B, F] array is a column-major F x B matrix: one column a sample.
// The weights are stored so that the thin layers read whole columns: W1 and W2
// as out x in, W3 (two outputs only) as in x out.
template <typename Scalar>
struct Layout {
  static constexpr int kIn = Mlp<Scalar>::kInputs;
  static constexpr int kHid = Mlp<Scalar>::kHidden;
  static constexpr int kOut = Mlp<Scalar>::kOutputs;

  using Vector = Eigen::Matrix<Scalar, kHid, 1>;
  using Samples = Eigen::Matrix<Scalar, kHid, Eigen::Dynamic>;
  using First = Eigen::Matrix<Scalar, kHid, kIn>;
  using Middle = Eigen::Matrix<Scalar, kHid, kHid>;
  using Last = Eigen::Matrix<Scalar, kHid, kOut>;

  // Offsets into the flat array.
  static constexpr int64_t kW1 = 0;
  static constexpr int64_t kB1 = kW1 + kHid * kIn;
  static constexpr int64_t kW2 = kB1 + kHid;
  static constexpr int64_t kB2 = kW2 + kHid * kHid;
  static constexpr int64_t kW3 = kB2 + kHid;
  static constexpr int64_t kB3 = kW3 + kHid * kOut;
  static_assert(kB3 + kOut == Mlp<Scalar>::kParameters);
};

template <typename Matrix>
using ConstMap = Eigen::Map<const Matrix, Eigen::Aligned64>;
template <typename Matrix>
using MutableMap = Eigen::Map<Matrix, Eigen::Aligned64>;

}  // namespace

template <typename Scalar>
Mlp<Scalar>::Mlp(int64_t max_batch) : max_batch_(max_batch) {
  CHECK_GT(max_batch, 0);
  parameters_.resize(kParameters);
  input_.resize(max_batch * kInputs);
  for (auto* layer : {&hidden1_, &hidden2_, &delta1_, &delta2_}) {
    layer->resize(max_batch * kHidden);
  }
}

template <typename Scalar>
void Mlp<Scalar>::Initialize(absl::Span<const double> uniforms) {
  CHECK_EQ(static_cast<int64_t>(uniforms.size()), kParameters);
  using L = Layout<Scalar>;
  const auto fill = [&](int64_t begin, int64_t end, double bound) {
    for (int64_t i = begin; i < end; ++i) {
      parameters_[i] = static_cast<Scalar>(bound * (2 * uniforms[i] - 1));
    }
  };
  fill(L::kW1, L::kB1, std::sqrt(6.0 / kInputs));
  fill(L::kB1, L::kW2, 0);
  fill(L::kW2, L::kB2, std::sqrt(6.0 / kHidden));
  fill(L::kB2, L::kW3, 0);
  fill(L::kW3, L::kB3, 0.1 * std::sqrt(6.0 / kHidden));
  fill(L::kB3, kParameters, 0);
}

template <typename Scalar>
void Mlp<Scalar>::Forward(absl::Span<const Scalar> input,
                          absl::Span<Scalar> output) {
  using L = Layout<Scalar>;
  batch_ = static_cast<int64_t>(input.size()) / kInputs;
  CHECK_LE(batch_, max_batch_);
  CHECK_EQ(static_cast<int64_t>(input.size()), batch_ * kInputs);
  CHECK_EQ(static_cast<int64_t>(output.size()), batch_ * kOutputs);
  std::copy(input.begin(), input.end(), input_.begin());

  const Scalar* flat = parameters_.data();
  const ConstMap<typename L::First> w1(flat + L::kW1);
  const ConstMap<typename L::Vector> b1(flat + L::kB1);
  const ConstMap<typename L::Middle> w2(flat + L::kW2);
  const ConstMap<typename L::Vector> b2(flat + L::kB2);
  const ConstMap<typename L::Last> w3(flat + L::kW3);
  const Scalar* b3 = flat + L::kB3;
  MutableMap<typename L::Samples> h1(hidden1_.data(), kHidden, batch_);
  MutableMap<typename L::Samples> h2(hidden2_.data(), kHidden, batch_);

  for (int64_t b = 0; b < batch_; ++b) {
    const Scalar* x = input_.data() + b * kInputs;
    // Four inputs: a sum of columns is quicker than a matrix product.
    h1.col(b) = (b1 + w1.col(0) * x[0] + w1.col(1) * x[1] + w1.col(2) * x[2] +
                 w1.col(3) * x[3])
                    .cwiseMax(Scalar{0});
  }
  // noalias: Eigen writes the product in place, without a temporary.
  h2.noalias() = w2 * h1;
  for (int64_t b = 0; b < batch_; ++b) {
    h2.col(b) = (h2.col(b) + b2).cwiseMax(Scalar{0});
    for (int j = 0; j < kOutputs; ++j) {
      output[b * kOutputs + j] = b3[j] + w3.col(j).dot(h2.col(b));
    }
  }
}

template <typename Scalar>
void Mlp<Scalar>::Backward(absl::Span<const Scalar> output_gradient,
                           absl::Span<Scalar> gradient) {
  using L = Layout<Scalar>;
  CHECK_EQ(static_cast<int64_t>(output_gradient.size()), batch_ * kOutputs);
  CHECK_EQ(static_cast<int64_t>(gradient.size()), kParameters);
  const Scalar* flat = parameters_.data();
  const ConstMap<typename L::Middle> w2(flat + L::kW2);
  const ConstMap<typename L::Last> w3(flat + L::kW3);
  const ConstMap<typename L::Samples> h1(hidden1_.data(), kHidden, batch_);
  const ConstMap<typename L::Samples> h2(hidden2_.data(), kHidden, batch_);
  MutableMap<typename L::Samples> d1(delta1_.data(), kHidden, batch_);
  MutableMap<typename L::Samples> d2(delta2_.data(), kHidden, batch_);
  // The caller's array may lie anywhere; elementwise sums do not mind.
  Scalar* out = gradient.data();
  Eigen::Map<typename L::First> dw1(out + L::kW1);
  Eigen::Map<typename L::Vector> db1(out + L::kB1);
  Eigen::Map<typename L::Middle> dw2(out + L::kW2);
  Eigen::Map<typename L::Vector> db2(out + L::kB2);
  Eigen::Map<typename L::Last> dw3(out + L::kW3);
  Scalar* db3 = out + L::kB3;
  std::fill(gradient.begin(), gradient.end(), Scalar{0});

  for (int64_t b = 0; b < batch_; ++b) {
    const Scalar* g = output_gradient.data() + b * kOutputs;
    for (int j = 0; j < kOutputs; ++j) {
      db3[j] += g[j];
      dw3.col(j) += h2.col(b) * g[j];
    }
    // relu'(z) is 1 where the unit is on; a unit at exactly zero is off.
    d2.col(b) = (h2.col(b).array() > Scalar{0})
                    .select(w3.col(0) * g[0] + w3.col(1) * g[1], Scalar{0});
    db2 += d2.col(b);
  }
  dw2.noalias() = d2 * h1.transpose();
  d1.noalias() = w2.transpose() * d2;
  for (int64_t b = 0; b < batch_; ++b) {
    const Scalar* x = input_.data() + b * kInputs;
    // The gradient from the layer behind it, masked by relu's derivative.
    d1.col(b) = (h1.col(b).array() > Scalar{0}).select(d1.col(b), Scalar{0});
    db1 += d1.col(b);
    for (int k = 0; k < kInputs; ++k) dw1.col(k) += d1.col(b) * x[k];
  }
}

template class Mlp<float>;
template class Mlp<double>;

}  // namespace rill::dqn_cartpole
