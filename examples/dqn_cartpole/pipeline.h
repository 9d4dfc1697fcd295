// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_PIPELINE_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_PIPELINE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/env.h"
#include "rill/examples/dqn_cartpole/config.h"
#include "rill/examples/dqn_cartpole/epsilon_greedy_policy.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/replay/replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::dqn_cartpole {

// The parts of the run and how they are joined; start reading here.
//
//   CartPole-v1 -> SyncCollector( StepCounter, RewardSum, RewardScaling )
//        ^                |  batches [lanes, time]
//        |                v
//   EpsilonGreedyPolicy   ReplayBuffer( DenseStorage, UniformSampler )
//        ^                |  samples [batch_size]
//        |                v
//        +---------- DoubleDqn
//
// Thread-safety: thread-compatible.
struct Pipeline {
  std::unique_ptr<DoubleDqn> learner;
  std::unique_ptr<EpsilonGreedyPolicy> policy;  // Acts with the learner.
  std::unique_ptr<SyncCollector> collector;     // Asks the policy.
  std::unique_ptr<ReplayBuffer> replay;
  // An episode a lane, beside the rest.
  std::unique_ptr<Env> probe_env;
  std::unique_ptr<Env> evaluation_env;
};

// A learner whose initial weights are a function of the seed, for batches of
// every number of lanes, episodes and transitions that the configuration names.
std::unique_ptr<DoubleDqn> MakeLearner(const Config& config);

// A pipeline at its beginning. The configuration is valid (ValidateConfig).
// Its replay buffer is that which ReplayBuffer::Save wrote to
// `replay_directory`, with errors as ReplayBuffer::Open; "": a new one.
absl::StatusOr<Pipeline> MakePipeline(const Config& config,
                                      const std::string& replay_directory = "");

// The learner's networks and optimizer: four float32 arrays of
// [DoubleDqn::kParameters] and the step count. Load checks everything first:
// DATA_LOSS or NOT_FOUND, learner as it was, where a leaf does not fit.
absl::StatusOr<TensorDict> SaveLearner(DoubleDqn& learner);
absl::Status LoadLearner(const TensorDict& state, DoubleDqn* learner);

// One update of the learner from a sample of the replay buffer; its TD errors
// go to `errors`, if there is one. INVALID_ARGUMENT where an action is none of
// CartPole's.
absl::StatusOr<DoubleDqn::UpdateStats> LearnFrom(
    const TensorDict& batch, double learning_rate, DoubleDqn* learner,
    std::vector<float>* errors = nullptr);

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_PIPELINE_H_
