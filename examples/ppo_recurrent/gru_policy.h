// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_RECURRENT_GRU_POLICY_H_
#define RILL_EXAMPLES_PPO_RECURRENT_GRU_POLICY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/ppo_recurrent/learner/gru_actor_critic.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ppo_recurrent {

// Acts by a recurrent actor and critic. It reads `observation` [lanes, inputs],
// `action_mask` [lanes, actions] and the recurrent state `hidden` [lanes,
// units]; it writes `action`, its `log_prob`, the `state_value` [lanes, 1] and
// the state behind the step, `next/hidden`. All that it remembers is in these
// leaves, so that lanes begin and go on as the caller says.
//
// Draws are a function of (SeedOf(seed), step, lane). With ActContext::explore
// off the likeliest action is taken. The version is `*updates`. Thread-safety:
// thread-compatible; uses the networks' workspace.
class GruPolicy final : public Policy {
 public:
  // Neither is owned; both outlive the policy.
  GruPolicy(GruActorCritic<float>* networks, const int64_t* updates,
            uint64_t seed);

  const TensorDictSpec& output_spec() const override { return outputs_; }

  // INVALID_ARGUMENT names the leaf whose size does not fit.
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  GruActorCritic<float>* networks_;
  const int64_t* updates_;
  uint64_t seed_;
  TensorDictSpec outputs_;
  std::vector<float> logits_;
};

}  // namespace rill::ppo_recurrent

#endif  // RILL_EXAMPLES_PPO_RECURRENT_GRU_POLICY_H_
