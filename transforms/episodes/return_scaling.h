// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_RETURN_SCALING_H_
#define RILL_TRANSFORMS_EPISODES_RETURN_SCALING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Divides rewards by the running deviation of the discounted return, so that
// they have a scale that a learner can work with. No mean is taken away, as a
// shift of the rewards would change what is best. Beside an environment.
//
// A lane's return is the sum of its rewards in the episode so far, each times
// `gamma` for each step behind it. After each step the returns of all lanes
// count, and then the rewards are divided. A reset counts nothing, and its
// lanes' returns begin from 0.
//
// Source: VecNormalize of Stable-Baselines3 with norm_reward; put
// RewardClipping
//   behind it for its clip_reward. NormalizeReward of Gymnasium's vector
//   environments, whose return of a step that terminates is that reward alone.
//   As there, the statistics begin with a variance of 1 that has the weight of
//   1e-4 rows.
//
// Shapes: the reward below next, float32 or float64 [lanes, 1].
// State: `returns`, the statistics: exact sums as those of a VecNorm with decay
//   1, for ReadVecNorm and MergeVecNorm, which have no such beginning; and
//   `lane_returns`, float64 [lanes]. Collectors merge the statistics of their
//   workers, and hand them to others (TransformStates).
// Numerics: in double. The statistics depend on the rewards alone, to the bit,
//   as those of VecNorm do.
// Errors: INVALID_ARGUMENT where a return is not finite, or beyond 2^493; the
//   state stays. FAILED_PRECONDITION where the state has another layout, or
//   behind 2^36 rows.
// Thread-safety: immutable, but for state tensors that nobody holds any more,
//   which are used again under a lock.
// Cost: two passes over the lanes; no allocation once states come and go.
//
// Example (ReturnScalingTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto scaling,
//                         ReturnScaling::Create({.gamma = 0.99}));
struct ReturnScaling {
  struct Options {
    std::string reward_key = "reward";  // Below next.
    double gamma = 0.99;                // In [0, 1].
    double eps = 1e-8;                  // > 0; added to the variance.
    // Divides by the deviation that its state holds and learns nothing: load
    // the state of one that has learned. Without any, rewards stay.
    bool frozen = false;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_RETURN_SCALING_H_
