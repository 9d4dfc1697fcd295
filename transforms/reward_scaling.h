// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_REWARD_SCALING_H_
#define RILL_TRANSFORMS_REWARD_SCALING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/transform.h"

namespace rill {

// Rewards become reward * scale + loc; with standard_normal (reward - loc) /
// scale. TorchRL's RewardScaling. One that stands both beside the environment
// and in the buffer scales twice: use one object in one place.
//
// Shapes: the reward float32 or float64, any shape.
// Thread-safety: immutable.
// Numerics: float32 rewards are computed in double with scale and loc rounded
//   to float32, and rounded once, so results are the same on every machine.
//
// Example (RewardScalingTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto scaling, RewardScaling::Create({.scale = 0.1}));
class RewardScaling {
 public:
  struct Options {
    double scale = 1;  // Finite, not 0.
    double loc = 0;    // Finite.
    bool standard_normal = false;
    std::string key = "next/reward";
    bool on_forward = true;  // After a read from a buffer.
    bool on_step = true;     // After a step of an environment.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<Transform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_REWARD_SCALING_H_
