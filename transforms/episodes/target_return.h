// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_TARGET_RETURN_H_
#define RILL_TRANSFORMS_EPISODES_TARGET_RETURN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// The return that a policy is asked for, beside an environment: `target_return`
// after a reset; after a step what is left of it, or the same. TorchRL's
// TargetReturn. Which lanes are reset the environment says: there is no
// reset_key.
//
// Shapes: targets have the dtype and shape of their rewards, float32 or float64
//   of any shape, at the root and below next.
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable; what is left is in the data.
//
// Example (TargetReturnTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto target,
//                         TargetReturn::Create({.target_return = 200}));
struct TargetReturn {
  enum class Mode {
    kReduce,    // The rewards are taken off.
    kConstant,  // It stays.
  };
  struct Options {
    double target_return = 0;  // Finite.
    Mode mode = Mode::kReduce;
    std::vector<std::string> in_keys = {"next/reward"};
    std::vector<std::string> out_keys = {"target_return"};
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_TARGET_RETURN_H_
