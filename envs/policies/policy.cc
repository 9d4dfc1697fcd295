// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/policy.h"

#include "rill/base/status_macros.h"

namespace rill {

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
