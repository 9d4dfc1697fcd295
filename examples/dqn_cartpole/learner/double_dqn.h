// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_LEARNER_DOUBLE_DQN_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_LEARNER_DOUBLE_DQN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/examples/learning/adam.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/learning/mlp.h"

namespace rill::dqn_cartpole {

// A batch of B transitions as borrowed dense arrays.
struct TransitionBatch {
  absl::Span<const float> observation;       // [B, 4]
  absl::Span<const int64_t> action;          // [B], in [0, 2)
  absl::Span<const float> reward;            // [B]
  absl::Span<const float> next_observation;  // [B, 4]
  // [B]: the episode ended by its own rules, so nothing follows. A truncated
  // episode (time limit) is not in here: its value goes on past the cut.
  absl::Span<const bool> terminated;
};

// The double DQN learner: one network that learns, one that follows it.
//
//   a* = argmax_a Q_online(s', a)
//   y  = r + gamma (1 - terminated) Q_target(s', a*)
//   L  = mean_b huber(Q_online(s_b, a_b) - y_b)
//   target <- target + tau (online - target)
//
// Sources: van Hasselt et al., "Deep Reinforcement Learning with Double
//   Q-learning", AAAI 2016, arXiv:1509.06461, eq. 4; the soft update of the
//   target is Lillicrap et al., arXiv:1509.02971, algorithm 1.
// Differs: acting and evaluating use the target network. It is a running
//   average of the learning one, and its greedy policy changes smoothly.
// Thread-safety: thread-compatible.
// Cost: Update is about B * 10 * kParameters flops, plus one pass of the
//   optimizer; no allocation.
// Numerics: equal state and equal batches give equal bits (see Mlp).
class DoubleDqn {
 public:
  static constexpr int64_t kFeatures = 4;
  static constexpr int64_t kActions = 2;
  // Each network has so many.
  static constexpr int64_t kParameters =
      learning::Mlp<float>::NumParameters(kFeatures, kActions);

  struct Options {
    double gamma = 0.99;       // Discount, in [0, 1].
    double huber_delta = 1.0;  // Where the loss turns linear, > 0.
    double target_tau = 0.01;  // Soft update's step, in (0, 1].
    learning::Adam::Options adam = {};
  };

  struct UpdateStats {
    double loss = 0;           // Mean Huber loss of the batch.
    double mean_value = 0;     // Mean Q_online(s, a) of the batch.
    double gradient_norm = 0;  // Before clipping; not finite: nothing learned.
  };

  // `max_batch` bounds the batches of Update and the lanes of the calls below.
  DoubleDqn(int64_t max_batch, const Options& options);

  // Initialises both networks alike from kParameters uniforms.
  void Initialize(absl::Span<const double> uniforms);

  // One gradient step of `learning_rate`, then the soft update of the target.
  // Writes td_errors[B] = Q_online(s, a) - y from before the step. CHECKs that
  // all spans speak of one B <= max_batch. If the gradient is not finite,
  // networks and optimizer stay as they were.
  UpdateStats Update(const TransitionBatch& batch, double learning_rate,
                     absl::Span<float> td_errors);

  // Writes the greedy actions[B] of the target network for observation[B, 4];
  // the lower action wins a tie.
  void GreedyActions(absl::Span<const float> observation,
                     absl::Span<int64_t> actions);

  // The state, for checkpoints: two networks and the optimizer.
  absl::Span<float> online_parameters() { return absl::MakeSpan(online_); }
  absl::Span<float> target_parameters() { return absl::MakeSpan(target_); }
  learning::Adam& adam() { return adam_; }

 private:
  // Fills target_values_ with y, [B].
  void ComputeTargets(const TransitionBatch& batch);

  Options options_;
  learning::Mlp<float> network_;  // With the parameters of either.
  learning::Adam adam_;
  learning::AlignedVector<float> online_, target_, gradient_;  // [kParameters]
  // [max_batch, kActions]
  std::vector<float> online_values_, next_values_, output_gradient_;
  std::vector<float> target_values_;  // [max_batch]
};

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_LEARNER_DOUBLE_DQN_H_
