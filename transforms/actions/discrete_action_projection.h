// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ACTIONS_DISCRETE_ACTION_PROJECTION_H_
#define RILL_TRANSFORMS_ACTIONS_DISCRETE_ACTION_PROJECTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// One policy of max_actions options for environments that have fewer: a choice
// past those that the environment has is drawn again from these, uniformly.
// TorchRL's DiscreteActionProjection; but for environments only, since the step
// keeps the policy's action, and for Categorical too.
//
// Shapes: the action Categorical or OneHot of num_actions_effective options, of
//   any dtype and dimensions before them; the policy's is the same of
//   max_actions.
// Thread-safety: immutable. State: the draws of the lanes.
//
// Example (DiscreteActionProjectionTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto projection,
//                         DiscreteActionProjection::Create(
//                             {.num_actions_effective = 4,
//                              .max_actions = 18}));
class DiscreteActionProjection {
 public:
  struct Options {
    int64_t num_actions_effective = 0;  // > 0.
    int64_t max_actions = 0;            // >= num_actions_effective.
    uint64_t seed = 0;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ACTIONS_DISCRETE_ACTION_PROJECTION_H_
