// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ACTIONS_FLATTEN_ACTION_H_
#define RILL_TRANSFORMS_ACTIONS_FLATTEN_ACTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/transforms/actions/action_specs.h"

namespace rill {

// Joins the dimensions [first_dim, last_dim] of actions. Beside an environment
// the policy's action is flat and the environment gets its own shape. After a
// read actions become flat; before a write flat ones get `action_shape` back,
// where it is given. TorchRL's FlattenAction.
//
// Shapes: any dtype; those of choices keep their last dimension as it is.
// Thread-safety: immutable.
// Cost: one copy.
//
// Example (FlattenActionTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto flatten, FlattenAction::Create({}));
class FlattenAction final : public transforms_internal::ActionTransform {
 public:
  struct Options {
    // A dimension of the shape of a row, without batch dimensions; negative
    // from its end.
    int first_dim = -2;
    int last_dim = -1;  // Inclusive.
    std::vector<std::string> in_keys = {"action"};
    // The sizes of these dimensions before they are joined. Empty: writes
    // change nothing.
    std::vector<int64_t> action_shape = {};
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<FlattenAction>> Create(
      const Options& options);

  absl::string_view name() const override { return "FlattenAction"; }
  OptionValues option_values() const override;

  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  absl::Status OnDeviceAction(const Call& call, Tensors leaves,
                              TensorDict* state) const override;

 private:
  FlattenAction(const Options& options, const Rows& rows);

  const Options options_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ACTIONS_FLATTEN_ACTION_H_
