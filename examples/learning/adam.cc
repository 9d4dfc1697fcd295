// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/learning/adam.h"

#include <cmath>
#include <cstdint>

#include "absl/log/check.h"
#include "absl/types/span.h"
#include "rill/examples/learning/kernels.h"

namespace rill::learning {
namespace {

// Eight independent sums: vectorisable, yet in an order that the code fixes and
// addresses do not.
double Norm(absl::Span<const float> values) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    for (size_t j = 0; j < 8; ++j) {
      sums[j] += static_cast<double>(values[i + j]) * values[i + j];
    }
  }
  for (size_t j = 0; i < values.size(); ++i, ++j) {
    sums[j] += static_cast<double>(values[i]) * values[i];
  }
  return std::sqrt(((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                   ((sums[4] + sums[5]) + (sums[6] + sums[7])));
}

}  // namespace

Adam::Adam(int64_t size, const Options& options) : options_(options) {
  CHECK_GT(size, 0);
  first_moment_.resize(size);
  second_moment_.resize(size);
}

double Adam::Step(double learning_rate, absl::Span<const float> gradient,
                  absl::Span<float> parameters) {
  CHECK_EQ(gradient.size(), first_moment_.size());
  CHECK_EQ(parameters.size(), first_moment_.size());
  const double norm = Norm(gradient);
  // Before anything changes: one bad batch must not spoil the moments.
  if (!std::isfinite(norm)) return norm;
  ++step_count_;
  const double clip = norm > options_.max_gradient_norm
                          ? options_.max_gradient_norm / norm
                          : 1.0;
  const double t = static_cast<double>(step_count_);
  const double correction1 = 1 - std::pow(options_.beta1, t);
  const double correction2 = 1 - std::pow(options_.beta2, t);
  // p -= rate * m / (sqrt(v) + eps'), with both corrections moved into
  // scalars.
  const float rate =
      static_cast<float>(learning_rate * std::sqrt(correction2) / correction1);
  const float epsilon =
      static_cast<float>(options_.epsilon * std::sqrt(correction2));
  // The clip is part of the gains, so the gradient is read once.
  const float gain1 = static_cast<float>((1 - options_.beta1) * clip);
  const float gain2 = static_cast<float>((1 - options_.beta2) * clip * clip);

  MoveByAdam({.decay1 = static_cast<float>(options_.beta1),
              .gain1 = gain1,
              .decay2 = static_cast<float>(options_.beta2),
              .gain2 = gain2,
              .rate = rate,
              .epsilon = epsilon},
             gradient, first_moment_.data(), second_moment_.data(),
             parameters.data());
  return norm;
}

}  // namespace rill::learning
