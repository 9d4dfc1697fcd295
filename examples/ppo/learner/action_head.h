// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_LEARNER_ACTION_HEAD_H_
#define RILL_EXAMPLES_PPO_LEARNER_ACTION_HEAD_H_

#include <cstdint>

#include "absl/types/span.h"
#include "rill/base/rng.h"

namespace rill::ppo {

// The meaning of an actor's outputs.
struct ActionKind {
  // True: one of `size` actions; outputs are logits, and an action is one
  // element, its number. False: `size` real elements from a Gaussian of
  // independent elements; outputs are means, deviations are parameters.
  bool is_discrete = true;
  int64_t size = 0;
  // Bounds of each real element. The Gaussian knows none: what is drawn is
  // learned from, and clipped for the environment alone.
  double low = -1;
  double high = 1;

  int64_t action_size() const { return is_discrete ? 1 : size; }
};

// Logarithm of an action's probability (density), the entropy in nats, and
// their gradients. All functions take one sample: `output` [size], `log_std`
// [size] (empty where discrete), `action` [action_size].
// Immutable inputs, no state. Sums are in double.
struct ActionTerms {
  double log_prob = 0;
  double entropy = 0;
};

template <typename Scalar>
ActionTerms EvaluateAction(const ActionKind& kind,
                           absl::Span<const Scalar> output,
                           absl::Span<const Scalar> log_std,
                           absl::Span<const Scalar> action);

// Given the gradient of a loss with respect to both terms, writes that with
// respect to `output` and adds that with respect to `log_std`.
template <typename Scalar>
void ActionGradient(const ActionKind& kind, absl::Span<const Scalar> output,
                    absl::Span<const Scalar> log_std,
                    absl::Span<const Scalar> action, const ActionTerms& slope,
                    absl::Span<Scalar> output_gradient,
                    absl::Span<double> log_std_gradient);

// Draws an action with the draws `first_draw` ... of `rng` at `batch`, one an
// element.
void SampleAction(const ActionKind& kind, absl::Span<const float> output,
                  absl::Span<const float> log_std, const Rng& rng,
                  uint64_t batch, uint32_t first_draw,
                  absl::Span<float> action);

// The likeliest action; of equal logits the lower one.
void BestAction(const ActionKind& kind, absl::Span<const float> output,
                absl::Span<float> action);

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_LEARNER_ACTION_HEAD_H_
