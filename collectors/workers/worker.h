// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_H_
#define RILL_COLLECTORS_WORKERS_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Which worker of a collector is being made.
struct WorkerContext {
  int64_t worker = 0;  // In [0, workers).
  int64_t workers = 1;
  int64_t restarts = 0;  // How often it was started anew.
  // WorkerSeed of the run's: for parts that draw and get it in no other way.
  // The environment is seeded with it, and policies have it in ActContext.
  uint64_t seed = 0;
  std::string argument;  // MultiCollectorOptions::argument.
  // Reads MultiCollectorOptions::weights; null without. Outlives the parts.
  WeightStore::Reader* weights = nullptr;
  // Acts by MultiCollectorOptions::inference; null without. Outlives the parts.
  Policy* inference = nullptr;
};

// The parts that a worker steps.
struct WorkerParts {
  std::unique_ptr<Env> env = nullptr;  // Required.
  // Null: WorkerContext::inference; without that, random actions for ever.
  std::unique_ptr<Policy> policy = nullptr;
  // Beside the environment, in this order (envs/transformed_env.h).
  std::vector<std::unique_ptr<StepTransform>> transforms = {};
  // Called in the worker before each batch: nothing else there sees where one
  // begins. With an error no batch is begun, and no episode ends. It comes back
  // from the call of the collector; the next one calls it again.
  std::function<absl::Status()> before_batch = nullptr;
  // Where the policy's leaves lie. None: on the environment's device. Batches
  // of workers are in host memory.
  std::optional<Device> policy_device = std::nullopt;
};

// Makes the parts of one worker, in its thread or process. All workers of a
// collector have the same leaves and the same number of lanes.
using WorkerFunction =
    std::function<absl::StatusOr<WorkerParts>(const WorkerContext&)>;

}  // namespace rill

#endif  // RILL_COLLECTORS_WORKERS_WORKER_H_
