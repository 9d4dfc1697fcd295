// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_PPO_POLICY_H_
#define RILL_EXAMPLES_PPO_PPO_POLICY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/ppo/learner/ppo_learner.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ppo {

// Acts by the learner's networks: reads `observation` float32 [lanes, inputs]
// and writes `action`, its `log_prob` and the `state_value`, float32 [lanes,
// 1]. Actions are int64 [lanes], or float32 [lanes, size] within their bounds.
// The latter have a leaf `drawn_action` too: as the Gaussian gave them, which
// is what log_prob is of.
//
// Draws are a function of (SeedOf(seed), step, lane), so the policy has no
// state. With ActContext::explore off the likeliest action is taken. The
// version of the weights is the number of rounds that were learned from.
// Thread-safety: thread-compatible; uses the networks' workspace.
class PpoPolicy final : public Policy {
 public:
  // The learner is not owned and must outlive the policy.
  PpoPolicy(PpoLearner* learner, uint64_t seed);

  const TensorDictSpec& output_spec() const override { return outputs_; }

  // INVALID_ARGUMENT names the leaf whose dtype or size does not fit.
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  PpoLearner* learner_;
  uint64_t seed_;
  TensorDictSpec outputs_;
  std::vector<float> heads_, actions_;
};

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_PPO_POLICY_H_
