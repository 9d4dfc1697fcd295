// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ACTIONS_ACTION_DISCRETIZER_H_
#define RILL_TRANSFORMS_ACTIONS_ACTION_DISCRETIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/specs/leaf_spec.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// For policies that choose, beside an environment whose actions are numbers
// with bounds. Each element's range is cut into intervals of one length; the
// policy chooses an interval, and the environment gets a number out of it.
// TorchRL's ActionDiscretizer, which finds the environment's spec itself: here
// it is an option, since a transform keeps nothing that it sees.
//
// The policy's action is MultiCategorical (int64) or MultiOneHot (bool) over
// the last dimension; Categorical or OneHot where the action is one number.
//
// Shapes: the environment's action float32 or float64 of any shape.
// Thread-safety: immutable. State: with kRandom the draws of the lanes.
// Numerics: in double, rounded once, and inside the bounds.
//
// Example (ActionDiscretizerTest.Example runs it):
//   // An environment's action_spec().
//   const LeafSpec torque = LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2);
//   RILL_ASSIGN_OR_RETURN(
//       auto discretizer,
//       ActionDiscretizer::Create({.spec = torque, .num_intervals = {11}}));
class ActionDiscretizer {
 public:
  // The number of an interval: its middle, an end, or any, uniformly.
  enum class Sampling { kMedian, kLow, kHigh, kRandom };

  struct Options {
    LeafSpec spec = {};  // The environment's action; finite bounds.
    // One for all, or one for each element of the last dimension; > 0.
    std::vector<int64_t> num_intervals = {};
    Sampling sampling = Sampling::kMedian;
    bool categorical = true;  // false: one-hot.
    uint64_t seed = 0;        // Of kRandom.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ACTIONS_ACTION_DISCRETIZER_H_
