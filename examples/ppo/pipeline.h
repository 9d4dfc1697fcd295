// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_PIPELINE_H_
#define RILL_EXAMPLES_PPO_PIPELINE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/envs/env.h"
#include "rill/examples/ppo/config.h"
#include "rill/examples/ppo/learner/ppo_learner.h"
#include "rill/examples/ppo/ppo_policy.h"
#include "rill/examples/ppo/task.h"
#include "rill/flow/source.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill::ppo {

// The parts of the run and how they are joined; start reading here.
//
//   task -> SyncCollector( DoubleToFloat, VecNorm, Clip, RewardSum,
//    ^            |         ReturnScaling, RewardClipping )
//    |            v  batches [lanes, time]
//   PpoPolicy   NextStateValue, GAE
//    ^            |  steps with advantages
//    |            v
//    +------- PpoLearner
//
// Thread-safety: thread-compatible.
struct Pipeline {
  std::unique_ptr<PpoLearner> learner;
  std::unique_ptr<PpoPolicy> policy;  // Acts with the learner.
  // Held by who acts in another thread, and by who learns.
  std::unique_ptr<absl::Mutex> networks = std::make_unique<absl::Mutex>();
  std::unique_ptr<Source> source;  // Asks the policy.
  // Values of next states by the networks, then GAE. A truncated episode
  // bootstraps from the value of its true last observation.
  std::unique_ptr<BatchTransform> advantages;
  // The statistics of the source's transforms.
  std::function<absl::StatusOr<TensorDict>()> transform_states;
};

// The configuration is valid (ValidateConfig). INVALID_ARGUMENT where the
// environment is none that a Task describes.
absl::StatusOr<Pipeline> MakePipeline(const Task& task, const Config& config);

// An environment of as many lanes as evaluation episodes, whose observations
// are normalised as those that the source has seen up to now: `states` are its
// transform_states.
absl::StatusOr<std::unique_ptr<Env>> MakeEvaluationEnv(
    const Task& task, const Config& config, const TensorDict& states);

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_PIPELINE_H_
