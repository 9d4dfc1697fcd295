// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/actor_critic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/log/check.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"

namespace rill::ppo {
namespace {

// Parts of a flat array begin at multiples of so many elements, 64 bytes or
// more, as aligned_vector.h wants it.
int64_t RoundUpToBlock(int64_t count) {
  constexpr int64_t kBlock = 16;
  return (count + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

template <typename Scalar>
ActorCritic<Scalar>::ActorCritic(int64_t inputs, const ActionKind& kind,
                                 int64_t max_batch)
    : kind_(kind),
      actor_({.inputs = inputs, .outputs = kind.size, .max_batch = max_batch}),
      critic_({.inputs = inputs, .outputs = 1, .max_batch = max_batch}) {
  parameters_.resize(critic_begin() + RoundUpToBlock(critic_.num_parameters()));
  advantage_.resize(max_batch);
  log_std_gradient_.resize(kind.size);
  // All memory of Loss is made here.
  output_.resize(max_batch * kind.size);
  output_gradient_.resize(max_batch * kind.size);
  value_.resize(max_batch);
  value_gradient_.resize(max_batch);
}

template <typename Scalar>
int64_t ActorCritic<Scalar>::log_std_begin() const {
  return RoundUpToBlock(actor_.num_parameters());
}

template <typename Scalar>
int64_t ActorCritic<Scalar>::critic_begin() const {
  return log_std_begin() + (kind_.is_discrete ? 0 : RoundUpToBlock(kind_.size));
}

template <typename Scalar>
absl::Span<const Scalar> ActorCritic<Scalar>::log_std() const {
  return parameters().subspan(log_std_begin(),
                              kind_.is_discrete ? 0 : kind_.size);
}

template <typename Scalar>
absl::Span<const Scalar> ActorCritic<Scalar>::actor_parameters() const {
  return parameters().first(actor_.num_parameters());
}

template <typename Scalar>
absl::Span<const Scalar> ActorCritic<Scalar>::critic_parameters() const {
  return parameters().subspan(critic_begin(), critic_.num_parameters());
}

template <typename Scalar>
void ActorCritic<Scalar>::Initialize(const Rng& rng) {
  std::fill(parameters_.begin(), parameters_.end(), Scalar{0});
  // Outputs near zero: at first no action is preferred.
  actor_.InitializeOrthogonally(rng, /*stream=*/0, /*output_gain=*/0.01,
                                parameters().first(actor_.num_parameters()));
  critic_.InitializeOrthogonally(
      rng, /*stream=*/1, /*output_gain=*/1,
      parameters().subspan(critic_begin(), critic_.num_parameters()));
}

template <typename Scalar>
void ActorCritic<Scalar>::Act(absl::Span<const Scalar> observation,
                              absl::Span<Scalar> output) {
  actor_.Forward(actor_parameters(), observation, output);
}

template <typename Scalar>
void ActorCritic<Scalar>::Values(absl::Span<const Scalar> observation,
                                 absl::Span<Scalar> value) {
  critic_.Forward(critic_parameters(), observation, value);
}

template <typename Scalar>
void ActorCritic<Scalar>::NormaliseAdvantages(
    absl::Span<const Scalar> advantage) {
  double sum = 0;
  for (Scalar a : advantage) sum += a;
  // The mean of the minibatch, as CleanRL has it, not of the whole round.
  const double mean = sum / static_cast<double>(advantage.size());
  double squares = 0;
  for (Scalar a : advantage) squares += (a - mean) * (a - mean);
  const double deviation =
      std::sqrt(squares / static_cast<double>(advantage.size() - 1));
  for (size_t i = 0; i < advantage.size(); ++i) {
    advantage_[i] = (advantage[i] - mean) / (deviation + 1e-8);
  }
}

template <typename Scalar>
void ActorCritic<Scalar>::AddPolicyLoss(const PpoBatch<Scalar>& batch,
                                        const PpoLossOptions& options,
                                        PpoStats* stats) {
  const double share = 1.0 / static_cast<double>(batch.size());
  const int64_t size = kind_.size, action_size = kind_.action_size();
  std::fill(log_std_gradient_.begin(), log_std_gradient_.end(), 0.0);
  const absl::Span<const Scalar> outputs = output_;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto output = outputs.subspan(i * size, size);
    const auto action = batch.action.subspan(i * action_size, action_size);
    const ActionTerms terms =
        EvaluateAction<Scalar>(kind_, output, log_std(), action);
    const ActionTerms slope = AddPolicyStep(
        terms, batch.log_prob[i], advantage_[i], share, options, stats);
    ActionGradient<Scalar>(
        kind_, output, log_std(), action, slope,
        absl::MakeSpan(output_gradient_).subspan(i * size, size),
        absl::MakeSpan(log_std_gradient_));
  }
}

template <typename Scalar>
void ActorCritic<Scalar>::AddValueLoss(const PpoBatch<Scalar>& batch,
                                       const PpoLossOptions& options,
                                       PpoStats* stats) {
  const double share = 1.0 / static_cast<double>(batch.size());
  for (int64_t i = 0; i < batch.size(); ++i) {
    value_gradient_[i] = static_cast<Scalar>(
        AddValueStep(value_[i], batch.value[i], batch.value_target[i], share,
                     options, stats));
  }
}

template <typename Scalar>
PpoStats ActorCritic<Scalar>::Loss(const PpoBatch<Scalar>& batch,
                                   const PpoLossOptions& options,
                                   absl::Span<Scalar> gradient) {
  CHECK_GE(batch.size(), 2);
  CHECK_EQ(gradient.size(), parameters_.size());
  PpoStats stats;
  const int64_t count = batch.size() * kind_.size;
  NormaliseAdvantages(batch.advantage);
  // The filling too: Adam steps over all elements.
  std::fill(gradient.begin(), gradient.end(), Scalar{0});

  // The actor's last Forward, which Backward needs.
  Act(batch.observation, absl::MakeSpan(output_).first(count));
  AddPolicyLoss(batch, options, &stats);
  actor_.Backward(actor_parameters(),
                  absl::MakeConstSpan(output_gradient_).first(count),
                  gradient.first(actor_.num_parameters()));
  for (size_t i = 0; i < log_std().size(); ++i) {
    gradient[log_std_begin() + i] = static_cast<Scalar>(log_std_gradient_[i]);
  }

  Values(batch.observation, absl::MakeSpan(value_).first(batch.size()));
  AddValueLoss(batch, options, &stats);
  critic_.Backward(critic_parameters(),
                   absl::MakeConstSpan(value_gradient_).first(batch.size()),
                   gradient.subspan(critic_begin(), critic_.num_parameters()));

  FinishLoss(options, &stats);
  return stats;
}

template class ActorCritic<float>;
template class ActorCritic<double>;

}  // namespace rill::ppo
