// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/action_head.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/standard_normal.h"

namespace rill::ppo {
namespace {

// log(2 pi) / 2.
const double kLogRootTwoPi = 0.5 * std::log(2 * std::numbers::pi);

// log(sum(exp(logits))), without overflow.
template <typename Scalar>
double LogSumExp(absl::Span<const Scalar> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (Scalar logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

}  // namespace

template <typename Scalar>
ActionTerms EvaluateAction(const ActionKind& kind,
                           absl::Span<const Scalar> output,
                           absl::Span<const Scalar> log_std,
                           absl::Span<const Scalar> action) {
  ActionTerms terms;
  if (kind.is_discrete) {
    const double log_sum = LogSumExp(output);
    for (Scalar logit : output) {
      const double log_p = logit - log_sum;
      terms.entropy -= std::exp(log_p) * log_p;
    }
    terms.log_prob = output[static_cast<size_t>(action[0])] - log_sum;
    return terms;
  }
  for (int64_t i = 0; i < kind.size; ++i) {
    const double z = (static_cast<double>(action[i]) - output[i]) *
                     std::exp(-static_cast<double>(log_std[i]));
    terms.log_prob -= 0.5 * z * z + log_std[i] + kLogRootTwoPi;
    terms.entropy += 0.5 + kLogRootTwoPi + log_std[i];
  }
  return terms;
}

template <typename Scalar>
void ActionGradient(const ActionKind& kind, absl::Span<const Scalar> output,
                    absl::Span<const Scalar> log_std,
                    absl::Span<const Scalar> action, const ActionTerms& slope,
                    absl::Span<Scalar> output_gradient,
                    absl::Span<double> log_std_gradient) {
  if (kind.is_discrete) {
    const double log_sum = LogSumExp(output);
    double entropy = 0;
    for (Scalar logit : output) {
      entropy -= std::exp(logit - log_sum) * (logit - log_sum);
    }
    const int64_t chosen = static_cast<int64_t>(action[0]);
    for (int64_t j = 0; j < kind.size; ++j) {
      const double log_p = output[j] - log_sum;
      const double p = std::exp(log_p);
      // d log p_chosen / d logit_j = [j = chosen] - p_j, and d entropy / d
      // logit_j = -p_j (log p_j + entropy).
      output_gradient[j] =
          static_cast<Scalar>(slope.log_prob * ((j == chosen ? 1.0 : 0.0) - p) -
                              slope.entropy * p * (log_p + entropy));
    }
    return;
  }
  for (int64_t i = 0; i < kind.size; ++i) {
    const double precision = std::exp(-static_cast<double>(log_std[i]));
    const double z = (static_cast<double>(action[i]) - output[i]) * precision;
    // With z = (a - mean) / std: d log p / d mean = z / std, and d log p / d
    // log_std = z^2 - 1. The entropy grows by 1 with each log_std.
    output_gradient[i] = static_cast<Scalar>(slope.log_prob * z * precision);
    log_std_gradient[i] += slope.log_prob * (z * z - 1) + slope.entropy;
  }
}

void SampleAction(const ActionKind& kind, absl::Span<const float> output,
                  absl::Span<const float> log_std, const Rng& rng,
                  uint64_t batch, uint32_t first_draw,
                  absl::Span<float> action) {
  if (!kind.is_discrete) {
    for (int64_t i = 0; i < kind.size; ++i) {
      const uint32_t draw = first_draw + static_cast<uint32_t>(i);
      action[i] = static_cast<float>(output[i] +
                                     std::exp(static_cast<double>(log_std[i])) *
                                         StandardNormal(rng.Bits(batch, draw)));
    }
    return;
  }
  const double log_sum = LogSumExp(output);
  // By the cumulative distribution: the action where the sum of probabilities
  // passes the draw.
  double left = rng.UniformDouble(batch, first_draw);
  int64_t chosen = 0;
  // The last action takes what rounding leaves.
  for (; chosen + 1 < kind.size; ++chosen) {
    left -= std::exp(output[chosen] - log_sum);
    if (left < 0) break;
  }
  action[0] = static_cast<float>(chosen);
}

void BestAction(const ActionKind& kind, absl::Span<const float> output,
                absl::Span<float> action) {
  if (kind.is_discrete) {
    action[0] = static_cast<float>(
        std::max_element(output.begin(), output.end()) - output.begin());
  } else {
    std::copy(output.begin(), output.end(), action.begin());
  }
}

#define RILL_PPO_INSTANTIATE(Scalar)                                         \
  template ActionTerms EvaluateAction<Scalar>(                               \
      const ActionKind&, absl::Span<const Scalar>, absl::Span<const Scalar>, \
      absl::Span<const Scalar>);                                             \
  template void ActionGradient<Scalar>(                                      \
      const ActionKind&, absl::Span<const Scalar>, absl::Span<const Scalar>, \
      absl::Span<const Scalar>, const ActionTerms&, absl::Span<Scalar>,      \
      absl::Span<double>)
RILL_PPO_INSTANTIATE(float);
RILL_PPO_INSTANTIATE(double);
#undef RILL_PPO_INSTANTIATE

}  // namespace rill::ppo
