// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/repeats/worker_collector.h"

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/workers/worker_seed.h"

namespace rill::workers_internal {

WorkerStart StartOf(const MultiCollectorOptions& options, int64_t worker,
                    int64_t restarts, int64_t producer) {
  return {.worker = worker,
          .workers = options.workers,
          .restarts = restarts,
          .seed = WorkerSeed(options.seed, worker, restarts),
          .frames_per_batch = AskedFrames(options, worker),
          .init_random_frames =
              ShareOf(options.init_random_frames, options.workers),
          .max_frames_per_traj = options.max_frames_per_traj,
          .producer = producer,
          .argument_bytes = static_cast<int64_t>(options.argument.size()),
          .explore = options.explore,
          .reset_at_each_batch = options.reset_at_each_batch,
          .set_truncated = options.set_truncated,
          .is_preemptive = options.preemptive_threshold.has_value(),
          .times_steps = TimesSteps(options)};
}

bool TimesSteps(const MultiCollectorOptions& options) {
  return options.worker == nullptr &&
         options.step_timeout != absl::InfiniteDuration();
}

absl::StatusOr<WorkerCollector> WorkerCollector::Create(
    const WorkerFunction& make, Options options) {
  const WorkerStart& start = options.start;
  RILL_ASSIGN_OR_RETURN(WorkerParts made,
                        make({.worker = start.worker,
                              .workers = start.workers,
                              .restarts = start.restarts,
                              .seed = start.seed,
                              .argument = std::string(options.argument),
                              .weights = options.weights,
                              .inference = options.inference}));
  if (made.env == nullptr) {
    return InvalidArgument(
        "WorkerFunction: env: got null, want an environment");
  }
  WorkerCollector worker;
  worker.lanes = made.env->lanes();
  worker.policy = std::move(made.policy);
  worker.before_batch = std::move(made.before_batch);
  SyncCollector::Options collector;
  collector.env = std::move(made.env);
  collector.policy =
      worker.policy != nullptr ? worker.policy.get() : options.inference;
  collector.transforms = std::move(made.transforms);
  collector.policy_device = made.policy_device;
  collector.frames_per_batch = start.frames_per_batch;
  collector.init_random_frames = start.init_random_frames;
  collector.max_frames_per_traj = start.max_frames_per_traj;
  collector.explore = start.explore;
  collector.reset_at_each_batch = start.reset_at_each_batch;
  collector.set_truncated = start.set_truncated;
  collector.seed = start.seed;
  // first_lane stays 0: the team adds the worker's own (Deliver).
  collector.producer = start.producer;
  collector.is_interrupted = std::move(options.is_interrupted);
  RILL_ASSIGN_OR_RETURN(worker.collector,
                        SyncCollector::Create(std::move(collector)));
  RILL_ASSIGN_OR_RETURN(worker.fresh, worker.collector->TransformStates());
  if (!options.statistics.empty()) {
    RILL_RETURN_IF_ERROR(
        worker.collector->LoadTransformStates(options.statistics));
  }
  return worker;
}

}  // namespace rill::workers_internal
