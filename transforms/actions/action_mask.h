// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ACTIONS_ACTION_MASK_H_
#define RILL_TRANSFORMS_ACTIONS_ACTION_MASK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Lets no action through to an environment that the mask at its root forbids.
// Such an action is an error that names lane and action, and no lane moves; or
// it is replaced by the first allowed one, and the step holds that: what was
// done is what is stored. TorchRL's ActionMask puts the mask into the action
// spec at each step. Here specs do not change while steps are made: a policy
// reads the mask's leaf, and the environment with this transform declares it
// (EnvSpec::legal_actions), so that random actions and explorers keep to it. A
// mask that allows nothing, as before the first reset, is FAILED_PRECONDITION.
//
// With `replace`, transforms further from the environment do not make the
// action from another one, and no policy writes its log-probability: both would
// be of the action that was not done.
//
// Shapes: the action Categorical or OneHot, of any dtype. The mask is bool,
//   true where an option is allowed. Its last dimension has the options: [n]
//   behind the dimensions of Categorical, or the shape of OneHot.
// Thread-safety: immutable.
//
// Example (ActionMaskTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto mask,
//                         ActionMask::Create({.mask_key = "legal"}));
class ActionMask {
 public:
  struct Options {
    std::string mask_key = "action_mask";
    // The environment gets the first allowed option in place of one that is
    // not, and the step holds it.
    bool replace = false;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ACTIONS_ACTION_MASK_H_
