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
// than short ones. A return is undiscounted, over all rewards of a lane, those
// of several agents together.
// INVALID_ARGUMENT names the option that is out of range.
//
// Nothing learns meanwhile (Env::SetLearning): equal calls give equal results.
// Statistics of transforms, as of a VecNorm, are applied and stay as they are.
// Those of no row apply nothing: load what a collector has learned before
// (TransformedEnv::LoadStatistics, of its TransformStates).
//
// The environment is left as it was, also after an error: its state, with open
// episodes and random numbers, and the leaves of step(). One that cannot save
// its state (SaveState is UNIMPLEMENTED) keeps the seed and is to be reset
// then, and what its transforms count over episodes has gone on (TrajCounter,
// Timer). The environment in a collector is not for evaluation.
//
// The policy sees steps from 0 on, the seed as ActContext::seed, and frames
// from those of the options on.
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
  // Of the run so far, where exploration that anneals is to be evaluated.
  int64_t frames = 0;
};
absl::StatusOr<EvaluateResult> EvaluatePolicy(Env& env, Policy& policy,
                                              const EvaluateOptions& options);
inline absl::StatusOr<EvaluateResult> EvaluatePolicy(
    Env& env, Policy&& policy, const EvaluateOptions& options) {
  return EvaluatePolicy(env, policy, options);
}

}  // namespace rill

#endif  // RILL_ENVS_EVALUATOR_H_
