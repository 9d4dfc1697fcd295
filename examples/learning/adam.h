// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_LEARNING_ADAM_H_
#define RILL_EXAMPLES_LEARNING_ADAM_H_

#include <cstdint>

#include "absl/types/span.h"
#include "rill/examples/learning/aligned_vector.h"

namespace rill::learning {

// Adam with the gradient clipped to a maximal Euclidean norm:
//
//   g <- g * min(1, max_gradient_norm / |g|)
//   m <- beta1 m + (1 - beta1) g,      v <- beta2 v + (1 - beta2) g^2
//   p <- p - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//
// Source: Kingma and Ba, "Adam", ICLR 2015, arXiv:1412.6980, algorithm 1.
// Shapes: parameters and gradient are flat arrays of `size` floats. The state
//   is two such arrays and the step count; a checkpoint saves these three.
// Thread-safety: thread-compatible.
// Cost: Step is O(size), two passes, no allocation.
// Numerics: |g| is summed in double in a fixed order.
class Adam {
 public:
  struct Options {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double max_gradient_norm = 10;  // > 0; infinity switches clipping off.
  };

  // CHECKs size > 0. Moments and step count start at zero.
  Adam(int64_t size, const Options& options);

  // Moves `parameters` by one step of the given learning rate and returns the
  // gradient's norm before clipping. A norm that is not finite leaves
  // parameters and state as they were: the caller sees it in the result.
  double Step(double learning_rate, absl::Span<const float> gradient,
              absl::Span<float> parameters);

  // The state, readable and writable so that a checkpoint can restore it.
  absl::Span<float> first_moment() { return absl::MakeSpan(first_moment_); }
  absl::Span<float> second_moment() { return absl::MakeSpan(second_moment_); }
  int64_t step_count() const { return step_count_; }
  void set_step_count(int64_t step_count) { step_count_ = step_count; }

 private:
  Options options_;
  int64_t step_count_ = 0;
  AlignedVector<float> first_moment_;
  AlignedVector<float> second_moment_;
};

}  // namespace rill::learning

#endif  // RILL_EXAMPLES_LEARNING_ADAM_H_
