// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_NEXT_STATE_VALUE_H_
#define RILL_ESTIMATORS_NEXT_STATE_VALUE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Gives values to N states. `states` [N] holds their leaves under the keys of a
// root; `values` [N, 1], or [N, agents, 1] of a group, is to be filled, as it
// is. That of a policy: MakePolicyCritic (envs/policies/policy_critic.h).
using Critic =
    std::function<absl::Status(const TensorDict& states, Tensor* values)>;

// Fills `next/state_value` of collected steps, which advantages want, from the
// `state_value` that was written while they were collected.
//
// The value of a next state is that of the row behind, where that is the same
// trajectory's. Where it is not, the critic is asked, once for all such rows of
// a batch: behind an end, behind the last row of a line and that of a piece
// (transforms/timeline/timeline.h). A terminated row gets 0, which no estimator
// looks at. A recurrent critic reads the state that lies below next
// ("next/hidden"), so list it in `state_keys`.
//
// Values of the rows are those of the weights that acted. With the same weights
// in the critic, results are exact; with newer ones the ends are newer.
//
// In a group of several agents the critic is asked behind each row where one of
// them ends, for all of them.
//
// Shapes: batches [*B, T], time last; values [*B, T, 1] of float32 or float64,
//   flags bool [*B, T, 1]. Values of a group of several agents are [*B, T,
//   agents, 1]; its flags are too, or the lane's.
// Errors: NOT_FOUND or INVALID_ARGUMENT name the key; the critic's come back.
// Thread-safety: that of the critic.
// Cost: one copy of the values, and a call of the critic for about one row a
//   line and one an end.
//
// Example (NextStateValueTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto fill, NextStateValue::Create(
//                                        {.critic = critic,
//                                         .state_keys = {"observation"}}));
//   RILL_RETURN_IF_ERROR(fill->Forward(&batch, &state));
struct NextStateValue {
  struct Options {
    Critic critic = nullptr;  // Required.
    // The leaves of a state that the critic reads. Each is below next, too.
    std::vector<std::string> state_keys = {"observation"};
    std::string value_key = "state_value";
    std::string next_value_key = "next/state_value";  // Written.
    std::string done_key = "next/done";
    std::string terminated_key = "next/terminated";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      Options options);
};

}  // namespace rill

#endif  // RILL_ESTIMATORS_NEXT_STATE_VALUE_H_
