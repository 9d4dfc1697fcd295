// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_LEARNER_MLP_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_LEARNER_MLP_H_

#include <cstdint>

#include "absl/types/span.h"
#include "rill/examples/dqn_cartpole/learner/aligned_vector.h"

namespace rill::dqn_cartpole {

// The Q-network: two hidden layers of rectified linear units,
//
//   h1 = relu(W1 x + b1),  h2 = relu(W2 h1 + b2),  q = W3 h2 + b3.
//
// The layer sizes are compile-time constants, so that Eigen unrolls the thin
// layers and picks its kernels when it compiles. All parameters lie in one flat
// array, in the order W1 b1 W2 b2 W3 b3. An optimizer steps over it, a target
// network copies it and a checkpoint saves it, all without knowing the layers.
//
// Shapes: input [B, kInputs] and output [B, kOutputs], row-major and dense, for
//   any batch size B in [0, max_batch] of the constructor.
// Thread-safety: thread-compatible; Forward and Backward write the workspace.
// Cost: Forward B * 2 * kParameters flops, Backward twice that; no allocation
//   after construction.
// Numerics: equal parameters, inputs and build give equal bits in every
//   process, because no sum's order depends on addresses or threads. Scalar is
//   float for training and double for the gradient check.
//
// Example (MlpTest.Example runs it):
//   Mlp<float> net(/*max_batch=*/2);
//   net.Initialize(uniforms);  // [Mlp<float>::kParameters] draws from [0, 1).
//   float q[2 * Mlp<float>::kOutputs];
//   net.Forward({0.1f, 0, 0, 0, -0.1f, 0, 0, 0}, absl::MakeSpan(q));
template <typename Scalar>
class Mlp {
 public:
  static constexpr int kInputs = 4;
  static constexpr int kHidden = 64;
  static constexpr int kOutputs = 2;
  static constexpr int64_t kParameters = (kInputs + 1) * kHidden +
                                         (kHidden + 1) * kHidden +
                                         (kHidden + 1) * kOutputs;

  // All parameters are zero until Initialize. CHECKs max_batch > 0.
  explicit Mlp(int64_t max_batch);

  // He's uniform initialisation: each weight is uniform in [-a, a) with a =
  // sqrt(6 / fan_in). The last layer has a tenth of that, so that the first
  // values are near zero. Biases are zero. `uniforms` holds kParameters draws
  // from [0, 1), one a parameter; where they come from is the caller's choice,
  // and equal draws give equal networks.
  void Initialize(absl::Span<const double> uniforms);

  // The flat parameters, [kParameters], readable and writable at any time.
  absl::Span<Scalar> parameters() { return absl::MakeSpan(parameters_); }
  absl::Span<const Scalar> parameters() const { return parameters_; }

  // Computes output[B, kOutputs] for input[B, kInputs] and keeps what Backward
  // needs. CHECKs that both spans speak of the same B <= max_batch.
  void Forward(absl::Span<const Scalar> input, absl::Span<Scalar> output);

  // Overwrites gradient[kParameters] with dL/dparameters for the batch of the
  // last Forward, given output_gradient[B, kOutputs] = dL/doutput. CHECKs B.
  void Backward(absl::Span<const Scalar> output_gradient,
                absl::Span<Scalar> gradient);

  int64_t max_batch() const { return max_batch_; }

 private:
  int64_t max_batch_;
  int64_t batch_ = 0;  // B of the last Forward.
  AlignedVector<Scalar> parameters_;
  AlignedVector<Scalar> input_;    // [max_batch, kInputs]
  AlignedVector<Scalar> hidden1_;  // [max_batch, kHidden], after relu
  AlignedVector<Scalar> hidden2_;  // [max_batch, kHidden], after relu
  AlignedVector<Scalar> delta1_;   // [max_batch, kHidden], dL/d(before relu)
  AlignedVector<Scalar> delta2_;   // [max_batch, kHidden], dL/d(before relu)
};

extern template class Mlp<float>;
extern template class Mlp<double>;

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_LEARNER_MLP_H_
