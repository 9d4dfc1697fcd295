// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_LEARNER_MLP_H_
#define RILL_EXAMPLES_PPO_LEARNER_MLP_H_

#include <cstdint>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/examples/dqn_cartpole/learner/aligned_vector.h"

namespace rill::ppo {

// Parts of flat arrays begin at multiples of so many elements: of 64 bytes or
// more, so that equal arrays give equal bits (aligned_vector.h).
inline constexpr int64_t kBlock = 16;
inline int64_t RoundUpToBlock(int64_t count) {
  return (count + kBlock - 1) / kBlock * kBlock;
}

// A network of two hidden layers of 64 units:
//
//   h1 = tanh(W1 x + b1),  h2 = tanh(W2 h1 + b2),  y = W3 h2 + b3
//
// Its parameters are a part of a flat array of the caller's. That array and the
// gradient begin at multiples of 64 bytes (AlignedVector). The order is
// W1 [64, inputs], b1, W2 [64, 64], b2, W3 [64, outputs] (transposed), b3.
// Matrices are column by column; zeros pad b3 to a block.
//
// Shapes: input [B, inputs] and output [B, outputs] row by row; B at most
//   max_batch.
// Thread-safety: thread-compatible; Forward keeps what Backward needs.
// Cost: 6 B (64 inputs + 4096 + 64 outputs) floating-point operations for the
//   three of forward, gradient of layers and gradient of weights.
// Scalar: float, and double for tests of the gradient.
template <typename Scalar>
class Mlp {
 public:
  static constexpr int kHidden = 64;

  // CHECKs that all are > 0.
  Mlp(int64_t inputs, int64_t outputs, int64_t max_batch);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  // The size of the flat array, a multiple of kBlock.
  int64_t num_parameters() const;

  // Orthogonal weights with gain sqrt(2), in the last layer `output_gain`;
  // biases are zero. Draws are those of `rng` at batch `stream`.
  // Source: Saxe, McClelland, Ganguli 2013, arXiv:1312.6120.
  void Initialize(const Rng& rng, uint64_t stream, double output_gain,
                  absl::Span<Scalar> parameters) const;

  void Forward(absl::Span<const Scalar> parameters,
               absl::Span<const Scalar> input, absl::Span<Scalar> output);

  // The gradient of a loss with respect to the parameters, from that with
  // respect to the output of the last Forward, whose parameters are to be the
  // same. Overwrites `gradient`.
  void Backward(absl::Span<const Scalar> parameters,
                absl::Span<const Scalar> output_gradient,
                absl::Span<Scalar> gradient);

 private:
  using Array = dqn_cartpole::AlignedVector<Scalar>;

  // Offsets into the flat array.
  int64_t b1() const { return kHidden * inputs_; }
  int64_t w2() const { return b1() + kHidden; }
  int64_t b2() const { return w2() + kHidden * kHidden; }
  int64_t w3() const { return b2() + kHidden; }
  int64_t b3() const { return w3() + kHidden * outputs_; }

  int64_t inputs_;
  int64_t outputs_;
  int64_t max_batch_;
  int64_t batch_ = 0;  // Of the last Forward.
  Array input_, hidden1_, hidden2_, delta1_, delta2_, output_;
};

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_LEARNER_MLP_H_
