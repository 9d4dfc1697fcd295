// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_ASYNC_DQN_WORKER_H_
#define RILL_EXAMPLES_ASYNC_DQN_WORKER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rill/collectors/workers/worker.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::async_dqn {

inline constexpr int64_t kLanes = 2;  // Of a worker.

// A worker steps CartPole with rewards of 1 / 100, and sums the rewards of 1 of
// an episode (`episode_reward`). Its policy acts greedily by
// the newest weights. Actions are random with a probability that falls from 1
// to 0.04 over the worker's first 1,250 frames.
absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context);

// The weights that a worker acts by, as a WeightStore publishes them: `target`,
// float32 [parameters]. Shares no bytes with the learner.
absl::StatusOr<TensorDict> WeightsOf(dqn_cartpole::DoubleDqn& learner);

}  // namespace rill::async_dqn

#endif  // RILL_EXAMPLES_ASYNC_DQN_WORKER_H_
