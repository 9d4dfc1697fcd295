// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_EPSILON_GREEDY_POLICY_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_EPSILON_GREEDY_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::dqn_cartpole {

// Reads `observation` float32 [lanes, 4] of `root` and fills `action` int64
// [lanes] with the learner's greedy actions: what an evaluation runs.
// INVALID_ARGUMENT names the leaf whose dtype or size does not fit.
absl::Status ActGreedily(DoubleDqn& learner, const TensorDict& root,
                         Tensor* action);

// Greedy, but random with probability epsilon, which falls in a straight line
// from 1 at frame 0 to final_epsilon at frame epsilon_frames and stays there.
//
// Draws are a function of (ActContext::SeedOf(seed), step, lane): the policy
// has no state, a resumed run acts as an uninterrupted one, and workers draw
// numbers of their own. Thread-safety: thread-compatible; uses the learner's
// workspace.
class EpsilonGreedyPolicy final : public Policy {
 public:
  struct Options {
    uint64_t seed = 0;
    int64_t epsilon_frames = 1;  // > 0.
    double final_epsilon = 0;    // In [0, 1].
  };

  // The learner is not owned and must outlive the policy.
  EpsilonGreedyPolicy(DoubleDqn* learner, const Options& options);

  // With ActContext::explore off it is greedy.
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

  double EpsilonAt(int64_t frames) const;

 private:
  DoubleDqn* learner_;
  Options options_;
};

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_EPSILON_GREEDY_POLICY_H_
