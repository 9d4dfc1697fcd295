// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/learning/mlp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/log/check.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/standard_normal.h"
#include "rill/examples/learning/kernels.h"

namespace rill::learning {
namespace {

// to[64] += column[64] factor
template <typename Scalar>
void AddColumn(const Scalar* __restrict column, Scalar factor,
               Scalar* __restrict to) {
  for (int i = 0; i < Mlp<Scalar>::kHidden; ++i) to[i] += column[i] * factor;
}

// to[64] += columns[64, count] factors[count], in the order of the columns.
template <typename Scalar>
void AddColumns(const Scalar* __restrict columns, int64_t count,
                const Scalar* __restrict factors, Scalar* __restrict to) {
  constexpr int kRows = Mlp<Scalar>::kHidden;
  // Four at once, which reads and writes `to` once.
  for (; count >= 4; count -= 4, columns += 4 * kRows, factors += 4) {
    for (int i = 0; i < kRows; ++i) {
      to[i] = to[i] + columns[i] * factors[0] +
              columns[kRows + i] * factors[1] +
              columns[2 * kRows + i] * factors[2] +
              columns[3 * kRows + i] * factors[3];
    }
  }
  for (int64_t k = 0; k < count; ++k) {
    AddColumn(columns + k * kRows, factors[k], to);
  }
}

// Fills the columns of a matrix with a bias, to which products are added.
template <typename Scalar>
void FillColumns(const Scalar* bias, int64_t rows, int64_t columns,
                 Scalar* matrix) {
  for (int64_t j = 0; j < columns; ++j) {
    std::copy_n(bias, rows, matrix + j * rows);
  }
}

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
Mlp<Scalar>::Mlp(const MlpOptions& options)
    : inputs_(options.inputs),
      outputs_(options.outputs),
      max_batch_(options.max_batch),
      activation_(options.activation),
      has_thin_ends_(options.has_thin_ends) {
  CHECK_GT(inputs_, 0);
  CHECK_GT(outputs_, 0);
  CHECK_GT(max_batch_, 0);
  input_.resize(max_batch_ * inputs_);
  output_.resize(max_batch_ * outputs_);
  for (Array* layer : {&hidden1_, &hidden2_, &delta1_, &delta2_}) {
    layer->resize(max_batch_ * kHidden);
  }
}

template <typename Scalar>
void Mlp<Scalar>::InitializeOrthogonally(const Rng& rng, uint64_t stream,
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
void Mlp<Scalar>::InitializeUniformly(absl::Span<const double> uniforms,
                                      absl::Span<Scalar> parameters) const {
  CHECK_EQ(static_cast<int64_t>(parameters.size()), num_parameters());
  CHECK_EQ(uniforms.size(), parameters.size());
  std::fill(parameters.begin(), parameters.end(), Scalar{0});
  const auto fill = [&](int64_t begin, int64_t end, double bound) {
    for (int64_t i = begin; i < end; ++i) {
      parameters[i] = static_cast<Scalar>(bound * (2 * uniforms[i] - 1));
    }
  };
  fill(0, b1(), std::sqrt(6.0 / static_cast<double>(inputs_)));
  fill(w2(), b2(), std::sqrt(6.0 / kHidden));
  fill(w3(), b3(), 0.1 * std::sqrt(6.0 / kHidden));
}

template <typename Scalar>
void Mlp<Scalar>::Activate(absl::Span<Scalar> x) const {
  if (activation_ == Activation::kTanh) {
    Tanh(x);
  } else {
    for (Scalar& element : x) element = std::max(element, Scalar{0});
  }
}

template <typename Scalar>
void Mlp<Scalar>::MultiplyBySlope(absl::Span<const Scalar> h,
                                  absl::Span<Scalar> slope) const {
  if (activation_ == Activation::kTanh) {
    for (size_t i = 0; i < h.size(); ++i) slope[i] *= Scalar{1} - h[i] * h[i];
  } else {
    // A unit at exactly zero is off.
    for (size_t i = 0; i < h.size(); ++i) {
      slope[i] = h[i] > Scalar{0} ? slope[i] : Scalar{0};
    }
  }
}

template <typename Scalar>
void Mlp<Scalar>::AddBiasGradient(const Scalar* delta, Scalar* sums) const {
  if (has_thin_ends_) {
    for (int64_t b = 0; b < batch_; ++b) {
      AddColumn(delta + b * kHidden, Scalar{1}, sums);
    }
  } else {
    AddRowSums(delta, kHidden, batch_, kHidden, sums);
  }
}

template <typename Scalar>
void Mlp<Scalar>::Forward(absl::Span<const Scalar> parameters,
                          absl::Span<const Scalar> input,
                          absl::Span<Scalar> output) {
  batch_ = static_cast<int64_t>(input.size()) / inputs_;
  CHECK_LE(batch_, max_batch_);
  CHECK_EQ(static_cast<int64_t>(input.size()), batch_ * inputs_);
  CHECK_EQ(static_cast<int64_t>(output.size()), batch_ * outputs_);
  CHECK_EQ(static_cast<int64_t>(parameters.size()), num_parameters());
  // A copy at a known alignment, which Backward reads too.
  std::copy(input.begin(), input.end(), input_.begin());

  const Scalar* const flat = parameters.data();
  const absl::Span<Scalar> h1 =
      absl::MakeSpan(hidden1_).first(batch_ * kHidden);
  const absl::Span<Scalar> h2 =
      absl::MakeSpan(hidden2_).first(batch_ * kHidden);
  FillColumns(flat + b1(), kHidden, batch_, h1.data());
  if (has_thin_ends_) {
    for (int64_t b = 0; b < batch_; ++b) {
      AddColumns(flat, inputs_, &input_[b * inputs_], &h1[b * kHidden]);
    }
  } else {
    AddProduct(Matrix<Scalar>{flat, kHidden, inputs_},
               Matrix<Scalar>{input_.data(), inputs_, batch_}, h1.data());
  }
  Activate(h1);
  FillColumns(flat + b2(), kHidden, batch_, h2.data());
  AddProduct(Matrix<Scalar>{flat + w2(), kHidden, kHidden},
             Matrix<Scalar>{h1.data(), kHidden, batch_}, h2.data());
  Activate(h2);
  FillColumns(flat + b3(), outputs_, batch_, output_.data());
  if (has_thin_ends_ || batch_ * outputs_ == 1) {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t j = 0; j < outputs_; ++j) {
        output_[b * outputs_ + j] +=
            Dot64(flat + w3() + j * kHidden, &h2[b * kHidden]);
      }
    }
  } else {
    AddProduct(Transposed(Matrix<Scalar>{flat + w3(), kHidden, outputs_}),
               Matrix<Scalar>{h2.data(), kHidden, batch_}, output_.data());
  }
  // The caller's span may have any alignment.
  std::copy_n(output_.begin(), output.size(), output.begin());
}

template <typename Scalar>
void Mlp<Scalar>::Backward(absl::Span<const Scalar> parameters,
                           absl::Span<const Scalar> output_gradient,
                           absl::Span<Scalar> gradient) {
  CHECK_EQ(static_cast<int64_t>(output_gradient.size()), batch_ * outputs_);
  CHECK_EQ(static_cast<int64_t>(parameters.size()), num_parameters());
  CHECK_EQ(static_cast<int64_t>(gradient.size()), num_parameters());
  // output_ is free by now: its values are with the caller.
  std::copy(output_gradient.begin(), output_gradient.end(), output_.begin());
  std::fill(gradient.begin(), gradient.end(), Scalar{0});

  const Scalar* const flat = parameters.data();
  Scalar* const out = gradient.data();
  const Matrix<Scalar> x = {input_.data(), inputs_, batch_};
  const Matrix<Scalar> dy = {output_.data(), outputs_, batch_};
  const Matrix<Scalar> h1 = {hidden1_.data(), kHidden, batch_};
  const Matrix<Scalar> h2 = {hidden2_.data(), kHidden, batch_};
  const Matrix<Scalar> d1 = {delta1_.data(), kHidden, batch_};
  const Matrix<Scalar> d2 = {delta2_.data(), kHidden, batch_};
  const int64_t count = batch_ * kHidden;
  std::fill_n(delta1_.begin(), count, Scalar{0});
  std::fill_n(delta2_.begin(), count, Scalar{0});

  if (has_thin_ends_) {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t j = 0; j < outputs_; ++j) {
        const Scalar slope = output_[b * outputs_ + j];
        out[b3() + j] += slope;
        AddColumn(h2.data + b * kHidden, slope, out + w3() + j * kHidden);
        AddColumn(flat + w3() + j * kHidden, slope, &delta2_[b * kHidden]);
      }
    }
  } else {
    AddProduct(h2, Transposed(dy), out + w3());
    AddRowSums(dy.data, outputs_, batch_, outputs_, out + b3());
    AddProduct(Matrix<Scalar>{flat + w3(), kHidden, outputs_}, dy,
               delta2_.data());
  }
  MultiplyBySlope(absl::MakeSpan(hidden2_).first(count),
                  absl::MakeSpan(delta2_).first(count));
  AddProduct(d2, Transposed(h1), out + w2());
  AddBiasGradient(d2.data, out + b2());
  AddProduct(Transposed(Matrix<Scalar>{flat + w2(), kHidden, kHidden}), d2,
             delta1_.data());
  MultiplyBySlope(absl::MakeSpan(hidden1_).first(count),
                  absl::MakeSpan(delta1_).first(count));
  if (has_thin_ends_) {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t k = 0; k < inputs_; ++k) {
        AddColumn(d1.data + b * kHidden, input_[b * inputs_ + k],
                  out + k * kHidden);
      }
    }
  } else {
    AddProduct(d1, Transposed(x), out);
  }
  AddBiasGradient(d1.data, out + b1());
}

template class Mlp<float>;
template class Mlp<double>;

}  // namespace rill::learning
