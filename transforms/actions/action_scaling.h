// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ACTIONS_ACTION_SCALING_H_
#define RILL_TRANSFORMS_ACTIONS_ACTION_SCALING_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/specs/leaf_spec.h"
#include "rill/transforms/actions/action_specs.h"

namespace rill {

// The policy acts in [-1, 1] (or [0, 1]), the environment gets action * scale +
// loc. TorchRL's ActionScaling, which finds the environment's spec itself: here
// it is an option, since a transform keeps nothing that it sees.
//
// Beside an environment: results are clamped to the bounds of `spec`, so that
// rounding leaves no action outside them. After a read the actions become
// (action - loc) / scale, before a write they become action * scale + loc. For
// data whose actions are the environment's, in_keys_inv is to be empty. Data of
// an environment that has this transform beside it hold the policy's actions:
// their buffer wants none.
//
// Shapes: float32 or float64; loc and scale one number, or one an element.
// Thread-safety: immutable.
// Numerics: in double, rounded once.
//
// Example (ActionScalingTest.Example runs it):
//   // An environment's action_spec().
//   const LeafSpec torque = LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2);
//   RILL_ASSIGN_OR_RETURN(auto scaling,
//                         ActionScaling::Create({.spec = torque}));
class ActionScaling final : public transforms_internal::ActionTransform {
 public:
  struct Options {
    // The environment's action; with no loc and scale they come from its
    // bounds: the middle, and half the distance. Wanted beside an environment.
    std::optional<LeafSpec> spec = std::nullopt;
    // Both or none. Finite; scales are not 0.
    std::vector<double> loc = {};
    std::vector<double> scale = {};
    bool standard_normal = true;  // false: [0, 1] in place of [-1, 1].
    std::vector<std::string> in_keys = {"action"};
    std::vector<std::string> in_keys_inv = {"action"};
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<ActionScaling>> Create(
      const Options& options);

  absl::string_view name() const override { return "ActionScaling"; }
  OptionValues option_values() const override;

  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;

 private:
  ActionScaling(const Options& options, std::optional<LeafSpec> outer,
                const Rows& rows);

  const Options options_;
  const std::optional<LeafSpec> outer_;  // The policy's action.
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ACTIONS_ACTION_SCALING_H_
