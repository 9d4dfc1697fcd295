// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/policy.h"

#include "absl/strings/match.h"
#include "rill/base/status_macros.h"

namespace rill {

bool IsLogProbKey(absl::string_view key) {
  // Below next it is recurrent state.
  if (absl::StartsWith(key, "next/")) return false;
  const absl::string_view name = key.substr(key.rfind('/') + 1);
  return name == "log_prob" || name == "action_log_prob" ||
         name == "sample_log_prob";
}

const TensorDictSpec& Policy::output_spec() const {
  // Never destroyed: policies of other static objects may outlive it.
  static const TensorDictSpec* const kNone = new TensorDictSpec();
  return *kNone;
}

absl::StatusOr<int64_t> FunctionPolicy::Act(const TensorDict& root,
                                            const ActContext& context,
                                            TensorDict* step) {
  const Tensor* leaf = step->Find("action");
  if (leaf == nullptr) {
    return InvalidArgument(
        "FunctionPolicy: leaf \"action\" is missing in the step; derive from "
        "Policy for other actions");
  }
  // A copy shares the bytes; a function that sets it to another tensor is found
  // by the address.
  Tensor action = *leaf;
  RILL_RETURN_IF_ERROR(act_(root, context, &action));
  if (action.raw_data() == leaf->raw_data()) return version_;
  return InvalidArgument(
      "FunctionPolicy: got another tensor in *action, want the given one "
      "filled in place; use CopyFrom");
}

}  // namespace rill
