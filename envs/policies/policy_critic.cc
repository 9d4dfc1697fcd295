// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/policy_critic.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"

namespace rill {

absl::StatusOr<
    std::function<absl::Status(const TensorDict& states, Tensor* values)>>
MakePolicyCritic(Policy* policy, TensorDictSpec action, std::string value_key) {
  if (policy == nullptr) {
    return InvalidArgument("MakePolicyCritic: policy: got null, want one");
  }
  const LeafSpec* const value = policy->output_spec().Find(value_key);
  const bool is_of_agents =
      value != nullptr && value->shape.rank() == 2 && value->shape[1] == 1;
  if (value == nullptr || (value->shape.num_elements() != 1 && !is_of_agents) ||
      (value->dtype != DType::kFloat32 && value->dtype != DType::kFloat64)) {
    return InvalidArgument(
        "MakePolicyCritic: value_key: got \"", value_key, "\", ",
        value == nullptr
            ? std::string("which is none of the policy's outputs")
            : absl::StrCat(DTypeName(value->dtype), value->shape.ToString()),
        ", want an output of the policy of one float32 or float64 a lane, or "
        "[agents, 1] of a group");
  }
  return [policy, action = std::move(action), value_key = std::move(value_key)](
             const TensorDict& states, Tensor* values) -> absl::Status {
    TensorDict step = states;
    for (const TensorDictSpec* spec : {&action, &policy->output_spec()}) {
      for (const auto& leaf : spec->leaves()) {
        RILL_ASSIGN_OR_RETURN(Tensor zeros,
                              leaf.spec.Zero(states.batch_shape()));
        RILL_RETURN_IF_ERROR(step.Set(leaf.key, std::move(zeros)));
      }
    }
    RILL_RETURN_IF_ERROR(
        CatchExceptions(
            [&] { return policy->Act(states, {.explore = false}, &step); },
            "Policy::Act")
            .status());
    const Tensor& made = *step.Find(value_key);
    if (made.dtype() != values->dtype() ||
        made.num_elements() != values->num_elements()) {
      return InvalidArgument("PolicyCritic: \"", value_key, "\": got ",
                             DTypeName(made.dtype()), made.shape().ToString(),
                             ", want ", DTypeName(values->dtype()),
                             values->shape().ToString());
    }
    std::memcpy(values->raw_data(), made.raw_data(), made.size_bytes());
    return absl::OkStatus();
  };
}

}  // namespace rill
