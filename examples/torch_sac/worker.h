// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_SAC_WORKER_H_
#define RILL_EXAMPLES_TORCH_SAC_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/collectors/workers/worker.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/torch_sac/networks.h"
#include "rill/libtorch/action_distribution.h"

namespace rill::torch_sac {

// A task with continuous actions within bounds.
struct Task {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Env>>(int64_t lanes)> make_env;
  Sizes sizes = {};
  ActionBounds bounds = {};
  double solve_return = 0;  // Of an evaluation.
};

// Acts by an actor of this process.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(
    const Task& task, std::shared_ptr<Actor> actor);

// The parts of a worker of the task: one lane, and a policy that acts by an
// actor of its own with the weights that were published last. Torch gets one
// thread there.
absl::StatusOr<WorkerParts> MakeWorker(const Task& task,
                                       const WorkerContext& context);

}  // namespace rill::torch_sac

#endif  // RILL_EXAMPLES_TORCH_SAC_WORKER_H_
