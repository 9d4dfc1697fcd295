// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_REWARD_SUM_H_
#define RILL_TRANSFORMS_REWARD_SUM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Sums the rewards of each lane's episode beside an environment: the root's sum
// is 0 after a reset, next's is the root's + next/reward. Placed behind
// RewardScaling it sums what that made of them. TorchRL's RewardSum.
//
// Shapes: `episode_reward` float32 [lanes, 1] at the root and below next; the
//   reward float32 or float64 [lanes, 1]. For a group of several agents, whose
//   reward is [lanes, agents, 1], a sum for each, up to the end of the lane.
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable; the sum is in the data.
// Numerics: one float32 addition a step.
//
// Example (RewardSumTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto sum, RewardSum::Create({}));
class RewardSum {
 public:
  struct Options {
    std::string reward_key = "reward";  // Below next.
    std::string sum_key = "episode_reward";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_REWARD_SUM_H_
