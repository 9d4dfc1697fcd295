// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/ppo_loss.h"

#include <algorithm>
#include <cmath>

namespace rill::ppo {

ActionTerms AddPolicyStep(const ActionTerms& terms, double log_prob_then,
                          double advantage, double share,
                          const PpoLossOptions& options, PpoStats* stats) {
  const double log_ratio = terms.log_prob - log_prob_then;
  // From the logarithms: the probability of a Gaussian's action may underflow.
  const double ratio = std::exp(log_ratio);
  const double clamped = std::clamp(ratio, 1 - options.clip, 1 + options.clip);
  const double plain = -advantage * ratio;
  const double clipped = -advantage * clamped;
  stats->policy_loss += share * std::max(plain, clipped);
  stats->entropy += share * terms.entropy;
  // Schulman's estimate of the divergence: its mean is that of -log_ratio, but
  // no term is negative, so it varies less.
  stats->approx_kl += share * ((ratio - 1) - log_ratio);
  stats->clip_fraction += share * (ratio != clamped ? 1 : 0);
  // Where the clamped one is larger it is constant; where both are equal the
  // ratio is inside. The derivative of the ratio by log_prob is the ratio
  // itself, so the slope of the plain loss is the plain loss.
  return {.log_prob = plain >= clipped ? share * plain : 0.0,
          .entropy = -share * options.entropy_coefficient};
}

double AddValueStep(double value, double value_then, double target,
                    double share, const PpoLossOptions& options,
                    PpoStats* stats) {
  const double change = value - value_then;
  // Without clipping both errors are the same.
  const double clamped = options.clip_value_loss
                             ? std::clamp(change, -options.clip, options.clip)
                             : change;
  const double plain = value - target;
  const double clipped = value_then + clamped - target;
  const bool takes_plain = plain * plain >= clipped * clipped;
  const double error = takes_plain ? plain : clipped;
  stats->value_loss += 0.5 * share * error * error;
  // A clamped value is constant.
  return takes_plain || change == clamped
             ? options.value_coefficient * share * error
             : 0.0;
}

void FinishLoss(const PpoLossOptions& options, PpoStats* stats) {
  stats->loss = stats->policy_loss +
                options.value_coefficient * stats->value_loss -
                options.entropy_coefficient * stats->entropy;
}

}  // namespace rill::ppo
