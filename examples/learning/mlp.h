// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_LEARNING_MLP_H_
#define RILL_EXAMPLES_LEARNING_MLP_H_

#include <cstdint>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/aligned_vector.h"

namespace rill::learning {

enum class Activation { kTanh, kRelu };

struct MlpOptions {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t max_batch = 0;
  Activation activation = Activation::kTanh;
  // Sums the first and the last layer column by column, which for up to about
  // four inputs and outputs is quicker than products of matrices. Sums of
  // floats round in another order then.
  bool has_thin_ends = false;
};

// A network of two hidden layers of 64 units, with f = tanh or relu:
//
//   h1 = f(W1 x + b1),  h2 = f(W2 h1 + b2),  y = W3 h2 + b3
//
// Its parameters are a part of a flat array of the caller's: an optimizer steps
// over it and a checkpoint saves it, and neither knows the layers. The order is
// W1 [64, inputs], b1, W2 [64, 64], b2, W3 [64, outputs] (transposed), b3.
// Matrices are column by column.
//
// Shapes: input [B, inputs] and output [B, outputs] row by row; B at most
//   max_batch.
// Thread-safety: thread-compatible; Forward keeps what Backward needs.
// Cost: 6 B (64 inputs + 4096 + 64 outputs) floating-point operations for the
//   three of forward, gradient of layers and gradient of weights.
// Numerics: equal parameters, inputs and build give equal bits in every
//   process, if parameters and gradient begin at multiples of 64 bytes
//   (AlignedVector). Scalar is float, and double for tests of the gradient.
//
// Example (MlpTest.Example runs it):
//   Mlp<float> net({.inputs = 4, .outputs = 2, .max_batch = 2});
//   AlignedVector<float> parameters(net.num_parameters());
//   net.InitializeOrthogonally(Rng(1), /*stream=*/0, /*output_gain=*/1,
//                              absl::MakeSpan(parameters));
//   float y[2 * 2];
//   net.Forward(parameters, {0.1f, 0, 0, 0, -0.1f, 0, 0, 0},
//               absl::MakeSpan(y));
template <typename Scalar>
class Mlp {
 public:
  static constexpr int kHidden = 64;

  static constexpr int64_t NumParameters(int64_t inputs, int64_t outputs) {
    return (inputs + 1 + kHidden + 1 + outputs) * kHidden + outputs;
  }

  // CHECKs that the numbers are > 0.
  explicit Mlp(const MlpOptions& options);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  int64_t num_parameters() const { return NumParameters(inputs_, outputs_); }

  // Orthogonal weights with gain sqrt(2), in the last layer `output_gain`;
  // biases are zero. Draws are those of `rng` at batch `stream`.
  // Source: Saxe, McClelland, Ganguli 2013, arXiv:1312.6120.
  void InitializeOrthogonally(const Rng& rng, uint64_t stream,
                              double output_gain,
                              absl::Span<Scalar> parameters) const;

  // He's uniform initialisation: each weight is uniform in [-a, a) with a =
  // sqrt(6 / fan_in), in the last layer a tenth of that; biases are zero.
  // `uniforms` holds a draw from [0, 1) a parameter.
  void InitializeUniformly(absl::Span<const double> uniforms,
                           absl::Span<Scalar> parameters) const;

  // CHECKs that the spans speak of one B <= max_batch.
  void Forward(absl::Span<const Scalar> parameters,
               absl::Span<const Scalar> input, absl::Span<Scalar> output);

  // The gradient of a loss with respect to the parameters, from that with
  // respect to the output of the last Forward, whose parameters are to be the
  // same. Overwrites `gradient`.
  void Backward(absl::Span<const Scalar> parameters,
                absl::Span<const Scalar> output_gradient,
                absl::Span<Scalar> gradient);

 private:
  using Array = AlignedVector<Scalar>;

  // Offsets into the flat array.
  int64_t b1() const { return kHidden * inputs_; }
  int64_t w2() const { return b1() + kHidden; }
  int64_t b2() const { return w2() + kHidden * kHidden; }
  int64_t w3() const { return b2() + kHidden; }
  int64_t b3() const { return w3() + kHidden * outputs_; }

  // x = f(x), and slope *= f'(x) given h = f(x).
  void Activate(absl::Span<Scalar> x) const;
  void MultiplyBySlope(absl::Span<const Scalar> h,
                       absl::Span<Scalar> slope) const;
  // sums += the sum of the columns of delta [64, B].
  void AddBiasGradient(const Scalar* delta, Scalar* sums) const;

  int64_t inputs_;
  int64_t outputs_;
  int64_t max_batch_;
  Activation activation_;
  bool has_thin_ends_;
  int64_t batch_ = 0;  // Of the last Forward.
  Array input_, hidden1_, hidden2_, delta1_, delta2_, output_;
};

}  // namespace rill::learning

#endif  // RILL_EXAMPLES_LEARNING_MLP_H_
