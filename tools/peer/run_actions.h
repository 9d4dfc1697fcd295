// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PEER_RUN_ACTIONS_H_
#define RILL_TOOLS_PEER_RUN_ACTIONS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// A transform that works beside an environment alone, on actions.
struct ActionCase {
  absl::string_view name;
  LeafSpec inner;  // The environment's action.
  absl::StatusOr<std::unique_ptr<StepTransform>> (*make)(const LeafSpec& inner);
};

// Null where there is none of this name.
const ActionCase* FindActionCase(absl::string_view name);

// Sets "inner" of `batch` [lanes], to what an environment gets where a policy
// has chosen "action". Errors of the transform.
absl::Status RunActions(const ActionCase& actions, TensorDict* batch);

}  // namespace rill

#endif  // RILL_TOOLS_PEER_RUN_ACTIONS_H_
