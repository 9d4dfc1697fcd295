// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_POLICIES_POLICY_CRITIC_H_
#define RILL_ENVS_POLICIES_POLICY_CRITIC_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The values that a policy gives to states beside their actions, as a function.
// `states` [N] holds the leaves that Act reads, recurrent state among them.
// `values` [N, 1] is filled, or [N, agents, 1] with the values of a group.
// NextStateValue (estimators/next_state_value.h) asks it.
//
// The policy acts in memory of the call, and does not explore; what it answers
// but for the value is dropped. It is not owned and outlives the function.
// `action` is EnvSpec::action. INVALID_ARGUMENT where the policy has no output
// `value_key` of one float32 or float64 a lane, or [agents, 1] of them, or
// `values` has another dtype.
// Thread-safety: that of the policy.
//
// Example (PolicyCriticTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto critic,
//                         MakePolicyCritic(&policy, env->spec().action));
//   RILL_RETURN_IF_ERROR(critic(states, &values));
absl::StatusOr<
    std::function<absl::Status(const TensorDict& states, Tensor* values)>>
MakePolicyCritic(Policy* policy, TensorDictSpec action,
                 std::string value_key = "state_value");

}  // namespace rill

#endif  // RILL_ENVS_POLICIES_POLICY_CRITIC_H_
