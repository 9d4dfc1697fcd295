// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_RECURRENT_LEARNER_GRU_ACTOR_CRITIC_H_
#define RILL_EXAMPLES_PPO_RECURRENT_LEARNER_GRU_ACTOR_CRITIC_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/learning/kernels.h"
#include "rill/examples/ppo/learner/action_head.h"
#include "rill/examples/ppo/learner/ppo_loss.h"

namespace rill::ppo_recurrent {

// Sequences to learn from, [S, T] each, row by row.
template <typename Scalar>
struct SequenceBatch {
  int64_t sequences = 0;                      // S
  int64_t length = 0;                         // T
  absl::Span<const Scalar> observation = {};  // [S, T, inputs]
  absl::Span<const Scalar> hidden = {};    // [S, units], before the first step.
  absl::Span<const bool> is_init = {};     // [S, T]: the state is 0 before it.
  absl::Span<const bool> is_legal = {};    // [S, T, actions]
  absl::Span<const int64_t> action = {};   // [S, T]
  absl::Span<const Scalar> log_prob = {};  // [S, T], when it was chosen.
  absl::Span<const Scalar> value = {};     // [S, T], at that time.
  absl::Span<const Scalar> advantage = {};     // [S, T]
  absl::Span<const Scalar> value_target = {};  // [S, T]
  // False: the step only pads. It counts nowhere. Padding is at the ends.
  absl::Span<const bool> is_valid = {};  // [S, T]
};

// A recurrent actor and critic on one GRU, and PPO's loss over sequences by
// truncated backpropagation through time:
//
//   z = sigmoid(Wz x + Uz h + bz),  r = sigmoid(Wr x + Ur h + br)
//   n = tanh(Wn x + bn + r (Un h + cn)),  h' = (1 - z) n + z h
//   logits = A h' + a, -infinity where an action is not legal;  value = v h' + w
//
// The gradient stops where a sequence begins and where an episode does.
// Advantages are normalised over the valid steps.
// Source: Cho et al. 2014, arXiv:1406.1078, in the form of cuDNN and PyTorch.
//
// Shapes: row by row, [B, ...]. Units of the state are a multiple of 16.
// Thread-safety: thread-compatible; calls use one workspace.
// Scalar: float, and double for tests of the gradient.
template <typename Scalar>
class GruActorCritic {
 public:
  // CHECKs that all are > 0.
  GruActorCritic(int64_t inputs, int64_t units, int64_t actions);

  int64_t inputs() const { return inputs_; }
  int64_t units() const { return units_; }
  const ppo::ActionKind& kind() const { return kind_; }

  // Uniform within 1 / sqrt(units); the actor's head a hundredth of that.
  void Initialize(const Rng& rng);

  // One flat array: W [3 units, inputs], U [3 units, units], b [3 units],
  // c [units], heads [actions + 1, units], their biases. Matrices are column by
  // column.
  absl::Span<Scalar> parameters() { return absl::MakeSpan(parameters_); }
  absl::Span<const Scalar> parameters() const { return parameters_; }

  // One step of B lanes: logits [B, actions], value [B] and the state behind
  // it, from the observation and the state before.
  void Step(absl::Span<const Scalar> observation,
            absl::Span<const Scalar> hidden, absl::Span<const bool> is_legal,
            absl::Span<Scalar> logits, absl::Span<Scalar> value,
            absl::Span<Scalar> next_hidden);

  // The loss of at least two valid steps; overwrites `gradient`, which has the
  // layout of parameters().
  ppo::PpoStats Loss(const SequenceBatch<Scalar>& batch,
                     const ppo::PpoLossOptions& options,
                     absl::Span<Scalar> gradient);

 private:
  using Array = learning::AlignedVector<Scalar>;
  using ConstMatrix = learning::Matrix<Scalar>;
  // What backpropagation needs of one time step, column by column a lane.
  struct StepMemory {
    Array x, before, z, r, n, q, after;  // q = Un h + cn.
  };

  int64_t u() const { return 3 * units_ * inputs_; }
  int64_t b() const { return u() + 3 * units_ * units_; }
  int64_t c() const { return b() + 3 * units_; }
  int64_t heads() const { return c() + units_; }
  int64_t outputs() const { return kind_.size + 1; }
  int64_t head_bias() const { return heads() + outputs() * units_; }

  // Fills `memory` from its x and before, and output_ [outputs, lanes].
  void Forward(int64_t lanes, StepMemory* memory);
  // Masks the logits of a lane in output_ and copies them to `logits`.
  void MaskLogits(int64_t lane, absl::Span<const bool> is_legal,
                  absl::Span<Scalar> logits) const;
  void LoadStep(const SequenceBatch<Scalar>& batch, int64_t t);
  void NormaliseAdvantages(const SequenceBatch<Scalar>& batch);
  // Adds step t to the stats; the slopes of its outputs go to slopes_[t].
  void AddStepLoss(const SequenceBatch<Scalar>& batch, int64_t t,
                   const ppo::PpoLossOptions& options, ppo::PpoStats* stats);
  // From slopes_[t] and the slope of the state behind t in state_slope_: adds
  // to `gradient`, and leaves the slope of the state before t there.
  void Backward(const SequenceBatch<Scalar>& batch, int64_t t,
                absl::Span<Scalar> gradient);

  int64_t inputs_;
  int64_t units_;
  ppo::ActionKind kind_;
  Array parameters_;
  std::vector<StepMemory> steps_;  // [T]
  Array output_;
  std::vector<Array> slopes_;  // [T][outputs, lanes]
  Array state_slope_;
  Array of_x_, of_h_, gates_;  // [3 units, lanes], of one step.
  std::vector<Scalar> logits_, logit_slope_;
  std::vector<double> advantage_;
  int64_t valid_ = 0;
};

}  // namespace rill::ppo_recurrent

#endif  // RILL_EXAMPLES_PPO_RECURRENT_LEARNER_GRU_ACTOR_CRITIC_H_
