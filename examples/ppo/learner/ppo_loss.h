// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_LEARNER_PPO_LOSS_H_
#define RILL_EXAMPLES_PPO_LEARNER_PPO_LOSS_H_

#include "rill/examples/ppo/learner/action_head.h"

namespace rill::ppo {

struct PpoLossOptions {
  double clip = 0.2;               // Of the ratio, and of the value's change.
  double value_coefficient = 0.5;  // Of the value loss.
  double entropy_coefficient = 0;
  bool clip_value_loss = true;
};

// Means over a batch.
struct PpoStats {
  double loss = 0;
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;
  double approx_kl = 0;      // mean((ratio - 1) - log(ratio)).
  double clip_fraction = 0;  // Share of ratios outside [1 - clip, 1 + clip].
};

// PPO's loss, one step at a time. With the ratio r = exp(log pi(a|s) -
// log_prob) and the normalised advantage A:
//
//   policy loss = mean(max(-A r, -A clamp(r, 1 - clip, 1 + clip)))
//   value loss = mean(max((v - target)^2, (v_clipped - target)^2)) / 2,
//     v_clipped = value + clamp(v - value, -clip, clip)
//   loss = policy loss + value_coefficient value loss
//          - entropy_coefficient entropy
//
// Each function adds the step's `share` of the means to `stats`, and returns
// the loss' slope at that step. `then` is of when the action was chosen.
// Source: Schulman et al. 2017, arXiv:1707.06347; CleanRL's ppo.py and
//   ppo_continuous_action.py, whose value loss this is.

// The slope by log-probability and entropy.
ActionTerms AddPolicyStep(const ActionTerms& terms, double log_prob_then,
                          double advantage, double share,
                          const PpoLossOptions& options, PpoStats* stats);

// The slope by the value.
double AddValueStep(double value, double value_then, double target,
                    double share, const PpoLossOptions& options,
                    PpoStats* stats);

// Sets stats->loss of the three means.
void FinishLoss(const PpoLossOptions& options, PpoStats* stats);

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_LEARNER_PPO_LOSS_H_
