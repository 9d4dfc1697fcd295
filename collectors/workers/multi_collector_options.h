// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_MULTI_COLLECTOR_OPTIONS_H_
#define RILL_COLLECTORS_WORKERS_MULTI_COLLECTOR_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/collectors/inference/inference_server.h"
#include "rill/collectors/workers/worker.h"
#include "rill/flow/decision_log.h"
#include "rill/flow/weights/weight_store.h"

namespace rill {

// How MultiSyncCollector::Next joins the batches of its workers.
enum class CatResults {
  kLanes,  // Side by side: [workers * lanes, time].
  kStack,  // [workers, lanes, time].
  kTime,   // One behind the other: [lanes, workers * time].
};

// The options of MultiSyncCollector and MultiAsyncCollector.
struct MultiCollectorOptions {
  int64_t workers = 1;  // [1, 4096].
  // Workers are threads that run this function ...
  WorkerFunction worker = nullptr;
  // ... or, without it, processes that run the function of this name which
  // WorkerMain was given (collectors/workers/worker_main.h).
  std::string worker_name = "";
  std::string argument = "";  // Handed to the function.

  // Weights that the workers' policies read (WorkerContext::weights), whose
  // version a policy returns from Act. Not owned; null: none. It has a reader
  // for each worker.
  const WeightStore* weights = nullptr;
  // >= 0, with weights: MultiAsyncCollector drops a batch whose newest version
  // is older than the latest by more than this, and cuts its lanes in the sink.
  // Random actions are version 0. -1: no batch is too old.
  int64_t max_staleness = -1;

  // Acts for the workers whose parts have no policy, and for those that ask it
  // themselves (WorkerContext::inference). Not owned; null: none. Worker w is
  // its client w. It outlives the collector.
  const InferenceServer* inference = nullptr;

  // Rows of all workers together, > 0. Each makes its share, rounded up, and
  // that rounded up to a multiple of its lanes.
  int64_t frames_per_batch = 0;
  // In place of frames_per_batch: rows of each worker, > 0, one number a
  // worker. Each is rounded up to a multiple of the lanes.
  std::vector<int64_t> frames_per_worker = {};
  // > 0: OUT_OF_RANGE once so many were handed out; batches are always whole,
  // so the last one may go beyond. -1: never.
  int64_t total_frames = -1;
  // As SyncCollector's; each worker makes its share, rounded up. One that
  // replaces another makes what that one's rows have left.
  int64_t init_random_frames = 0;
  // As SyncCollector's.
  bool explore = true;
  int64_t max_frames_per_traj = -1;
  bool reset_at_each_batch = false;
  bool set_truncated = false;
  // Of the run. Worker w has WorkerSeed(seed, w), and another for each time
  // that it was started anew (collectors/workers/worker_seed.h).
  uint64_t seed = 0;
  // Worker w is producer + w, and its lanes come behind those of the workers
  // before it. One that was started anew is producer + w + workers * restarts:
  // trajectory ids and numbers of batches do not repeat. None: numbers that no
  // other source of this process has, or those of a loaded state, as
  // SyncCollector's.
  std::optional<int64_t> producer = std::nullopt;
  int64_t first_lane = 0;

  // These two are MultiSyncCollector's; MultiAsyncCollector refuses them.
  // In (0, 1]: once this share of the workers has made its batch, the others
  // end theirs after the step at hand. Their next batches go on from there.
  // 1: only MultiSyncCollector::Interrupt ends batches. None: all are whole.
  std::optional<double> preemptive_threshold = std::nullopt;
  CatResults cat_results = CatResults::kLanes;

  // So many times in all a process that died, hung or was killed is replaced.
  int64_t max_restarts = 0;
  // For a worker to make its parts, and for a batch. A process that takes
  // longer is killed, and replaced; a thread that does is DEADLINE_EXCEEDED.
  absl::Duration start_timeout = absl::Seconds(60);
  absl::Duration batch_timeout = absl::InfiniteDuration();
  // The same for each time step of a process, with its resets, policy and
  // transforms, and before_batch with the first one of a batch. A hang then
  // holds the others up for a step's time, however long batches are. Beside an
  // InferenceServer take more than its max_wait. A thread has no such limit.
  absl::Duration step_timeout = absl::InfiniteDuration();
  // Notes arrivals, cuts and ends of workers, or repeats those of a run. Then
  // no worker is started: the calling thread steps their parts, and `weights`,
  // which has the same recorder, shows each step the snapshot that it was made
  // with. So a policy reads weights in Act, and returns their version. Not
  // owned; null: none. It outlives the collector. Not with `inference` or
  // `is_interrupted`, and without Pause, states and LoadTransformStates.
  DecisionLog* recorder = nullptr;
  // Asked 20 times a second in a call that waits for a batch, in its thread:
  // true is CANCELLED. Workers go on with the batch at hand, nothing is lost,
  // and the next call goes on where this one was. Null: nothing ends a wait.
  std::function<bool()> is_interrupted = nullptr;
  // The address space that a process may have, which shared memory and code
  // are part of (RLIMIT_AS). 0: no limit.
  int64_t max_worker_bytes = 0;
};

namespace workers_internal {

// INVALID_ARGUMENT, beginning with `caller`, names an option that no collector
// can have.
absl::Status CheckOptions(absl::string_view caller,
                          const MultiCollectorOptions& options);
// Rows of a worker's batch, before they are rounded up to its lanes.
int64_t AskedFrames(const MultiCollectorOptions& options, int64_t worker);
// Rounded up.
int64_t ShareOf(int64_t all, int64_t parts);

// When a wait for a batch looks next whether it is to end, and whether it is.
absl::Time NextLook(const MultiCollectorOptions& options);
absl::Status CheckInterrupted(absl::string_view caller,
                              const MultiCollectorOptions& options);

}  // namespace workers_internal
}  // namespace rill

#endif  // RILL_COLLECTORS_WORKERS_MULTI_COLLECTOR_OPTIONS_H_
