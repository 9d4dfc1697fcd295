// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/log/check.h"
#include "absl/types/span.h"

namespace rill::dqn_cartpole {
namespace {

int64_t ArgMax(const float* values) {
  return std::max_element(values, values + DoubleDqn::kActions) - values;
}

}  // namespace

DoubleDqn::DoubleDqn(int64_t max_batch, const Options& options)
    : options_(options),
      network_({.inputs = kFeatures,
                .outputs = kActions,
                .max_batch = max_batch,
                .activation = learning::Activation::kRelu,
                .has_thin_ends = true}),
      adam_(kParameters, options.adam),
      online_(kParameters),
      target_(kParameters),
      gradient_(kParameters),
      online_values_(max_batch * kActions),
      next_values_(max_batch * kActions),
      output_gradient_(max_batch * kActions),
      target_values_(max_batch) {}

void DoubleDqn::Initialize(absl::Span<const double> uniforms) {
  network_.InitializeUniformly(uniforms, absl::MakeSpan(online_));
  target_ = online_;
}

void DoubleDqn::ComputeTargets(const TransitionBatch& batch) {
  const int64_t size = static_cast<int64_t>(batch.action.size());
  const absl::Span<float> online =
      absl::MakeSpan(online_values_).first(size * kActions);
  const absl::Span<float> next =
      absl::MakeSpan(next_values_).first(size * kActions);
  network_.Forward(online_, batch.next_observation, online);
  network_.Forward(target_, batch.next_observation, next);
  const float gamma = static_cast<float>(options_.gamma);
  for (int64_t b = 0; b < size; ++b) {
    // One network chooses and the other gives the value, so that chance errors
    // of one of them are not maximised.
    const int64_t best = ArgMax(&online[b * kActions]);
    const float future = batch.terminated[b] ? 0 : next[b * kActions + best];
    target_values_[b] = batch.reward[b] + gamma * future;
  }
}

DoubleDqn::UpdateStats DoubleDqn::Update(const TransitionBatch& batch,
                                         double learning_rate,
                                         absl::Span<float> td_errors) {
  const int64_t size = static_cast<int64_t>(batch.action.size());
  CHECK_EQ(static_cast<int64_t>(batch.observation.size()), size * kFeatures);
  CHECK_EQ(batch.next_observation.size(), batch.observation.size());
  CHECK_EQ(static_cast<int64_t>(batch.reward.size()), size);
  CHECK_EQ(static_cast<int64_t>(batch.terminated.size()), size);
  CHECK_EQ(static_cast<int64_t>(td_errors.size()), size);
  ComputeTargets(batch);

  const absl::Span<float> values =
      absl::MakeSpan(online_values_).first(size * kActions);
  const absl::Span<float> output_gradient =
      absl::MakeSpan(output_gradient_).first(size * kActions);
  // After those for the targets: Backward is of the last Forward.
  network_.Forward(online_, batch.observation, values);
  std::fill(output_gradient.begin(), output_gradient.end(), 0.0f);
  const float delta = static_cast<float>(options_.huber_delta);
  const float share = 1.0f / static_cast<float>(std::max<int64_t>(size, 1));
  UpdateStats stats;
  for (int64_t b = 0; b < size; ++b) {
    const int64_t at = b * kActions + batch.action[b];
    const float error = values[at] - target_values_[b];
    const float size_of_error = std::abs(error);
    td_errors[b] = error;
    stats.mean_value += values[at];
    // Linear beyond delta: one outlier moves the weights by a bounded step.
    stats.loss += size_of_error <= delta
                      ? 0.5 * error * error
                      : delta * (size_of_error - 0.5 * delta);
    // The derivative of the Huber loss, for the action that was taken alone.
    output_gradient[at] = std::clamp(error, -delta, delta) * share;
  }
  stats.mean_value *= share;
  stats.loss *= share;
  network_.Backward(online_, output_gradient, absl::MakeSpan(gradient_));
  stats.gradient_norm =
      adam_.Step(learning_rate, gradient_, absl::MakeSpan(online_));
  // The online network has not moved, so the target does not either.
  if (!std::isfinite(stats.gradient_norm)) return stats;

  const float tau = static_cast<float>(options_.target_tau);
  for (size_t i = 0; i < target_.size(); ++i) {
    target_[i] += tau * (online_[i] - target_[i]);
  }
  return stats;
}

void DoubleDqn::GreedyActions(absl::Span<const float> observation,
                              absl::Span<int64_t> actions) {
  const int64_t size = static_cast<int64_t>(actions.size());
  const absl::Span<float> values =
      absl::MakeSpan(next_values_).first(size * kActions);
  network_.Forward(target_, observation, values);
  for (int64_t b = 0; b < size; ++b) {
    actions[b] = ArgMax(&values[b * kActions]);
  }
}

}  // namespace rill::dqn_cartpole
