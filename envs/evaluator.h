// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_EVALUATOR_H_
#define RILL_ENVS_EVALUATOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"

namespace rill {

struct EvaluateResult {
  std::vector<double> returns;  // One an episode, undiscounted.
  std::vector<int64_t> lengths;
  double mean_return = 0;
};

// Runs `episodes` whole episodes, all begun fresh after Seed(seed): lane l runs
// episodes l, l + lanes, ..., so that long episodes are not drawn less often
// than short ones. The environment keeps the seed and is to be reset then; one
// that a collector steps is not for evaluation. Steps and frames that the
// policy sees count from 0. A return is undiscounted, over all rewards of a
// lane. INVALID_ARGUMENT names the option that is out of range.
//
// Example (EvaluatorTest.EqualSeedsGiveEqualResults runs it):
//   RILL_ASSIGN_OR_RETURN(
//       EvaluateResult result,
//       EvaluatePolicy(*env, policy, {.episodes = 100, .seed = 1}));
struct EvaluateOptions {
  int64_t episodes = 100;
  uint64_t seed = 0;
  int64_t max_steps_per_episode = 1'000'000;  // Then DEADLINE_EXCEEDED.
  bool explore = false;                       // ActContext::explore.
};
absl::StatusOr<EvaluateResult> EvaluatePolicy(Env& env, Policy& policy,
                                              const EvaluateOptions& options);
inline absl::StatusOr<EvaluateResult> EvaluatePolicy(
    Env& env, Policy&& policy, const EvaluateOptions& options) {
  return EvaluatePolicy(env, policy, options);
}

}  // namespace rill

#endif  // RILL_ENVS_EVALUATOR_H_
