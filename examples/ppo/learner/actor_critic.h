// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_LEARNER_ACTOR_CRITIC_H_
#define RILL_EXAMPLES_PPO_LEARNER_ACTOR_CRITIC_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/learning/mlp.h"
#include "rill/examples/ppo/learner/action_head.h"
#include "rill/examples/ppo/learner/ppo_loss.h"

namespace rill::ppo {

// Steps to learn from, row by row. An action is action_size() elements.
template <typename Scalar>
struct PpoBatch {
  absl::Span<const Scalar> observation;   // [B, inputs]
  absl::Span<const Scalar> action;        // [B, action_size]
  absl::Span<const Scalar> log_prob;      // [B], when it was chosen.
  absl::Span<const Scalar> value;         // [B], at that time.
  absl::Span<const Scalar> advantage;     // [B]
  absl::Span<const Scalar> value_target;  // [B]

  int64_t size() const { return static_cast<int64_t>(advantage.size()); }
};

// An actor and a critic, two networks that share nothing, and PPO's loss
// (ppo_loss.h). Advantages are normalised to mean 0 and deviation 1 within the
// batch.
// Source: CleanRL's ppo.py and ppo_continuous_action.py, whose initialisation
//   this is.
// Thread-safety: thread-compatible.
template <typename Scalar>
class ActorCritic {
 public:
  ActorCritic(int64_t inputs, const ActionKind& kind, int64_t max_batch);

  // Orthogonal: gain sqrt(2) inside, 0.01 for the actor's and 1 for the
  // critic's last layer; biases and log_std are zero.
  void Initialize(const Rng& rng);

  // All parameters, one flat array: actor | log_std | critic, each filled up
  // with zeros to a multiple of 64 bytes.
  absl::Span<Scalar> parameters() { return absl::MakeSpan(parameters_); }
  absl::Span<const Scalar> parameters() const { return parameters_; }
  // [kind.size], empty where actions are discrete.
  absl::Span<const Scalar> log_std() const;
  const ActionKind& kind() const { return kind_; }
  int64_t inputs() const { return actor_.inputs(); }

  // Outputs [B, kind.size] and values [B] of observations [B, inputs].
  void Act(absl::Span<const Scalar> observation, absl::Span<Scalar> output);
  void Values(absl::Span<const Scalar> observation, absl::Span<Scalar> value);

  // The loss of a batch of at least two steps; overwrites `gradient`, which has
  // the layout of parameters() and begins at a multiple of 64 bytes.
  PpoStats Loss(const PpoBatch<Scalar>& batch, const PpoLossOptions& options,
                absl::Span<Scalar> gradient);

 private:
  void NormaliseAdvantages(absl::Span<const Scalar> advantage);
  void AddPolicyLoss(const PpoBatch<Scalar>& batch,
                     const PpoLossOptions& options, PpoStats* stats);
  void AddValueLoss(const PpoBatch<Scalar>& batch,
                    const PpoLossOptions& options, PpoStats* stats);

  int64_t log_std_begin() const;
  int64_t critic_begin() const;
  absl::Span<const Scalar> actor_parameters() const;
  absl::Span<const Scalar> critic_parameters() const;

  ActionKind kind_;
  learning::Mlp<Scalar> actor_;
  learning::Mlp<Scalar> critic_;
  learning::AlignedVector<Scalar> parameters_;
  // The following belong to the batch that Loss is at work on.
  std::vector<double> advantage_;
  std::vector<double> log_std_gradient_;
  std::vector<Scalar> output_, output_gradient_;
  std::vector<Scalar> value_, value_gradient_;
};

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_LEARNER_ACTOR_CRITIC_H_
