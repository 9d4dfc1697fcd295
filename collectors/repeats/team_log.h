// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_REPEATS_TEAM_LOG_H_
#define RILL_COLLECTORS_REPEATS_TEAM_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/collectors/repeats/repeated_worker.h"
#include "rill/collectors/repeats/worker_collector.h"  // IWYU pragma: export
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_deaths.h"
#include "rill/collectors/workers/worker_socket.h"
#include "rill/flow/decision_log.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// The way of a team of workers to MultiCollectorOptions::recorder. Where that
// repeats a run it has the workers, which are stepped in the calling thread.
// Without a recorder, notes do nothing.
//
// A log has what the collector saw of its workers, in the order in which it saw
// it: batches, cuts, ends. How they were asked and when they worked shows in
// that alone. So a repeat starts no worker. It asks the log what comes next,
// and steps that worker's environment up to there.
//
// Thread-safety: thread-compatible.
class TeamLog {
 public:
  TeamLog() = default;
  // `caller` and `producer`, the first worker's, are part of what is compared.
  // `options` outlives it. Errors as FindWorkerFunction.
  static absl::StatusOr<TeamLog> Create(absl::string_view caller,
                                        const MultiCollectorOptions& options,
                                        int64_t producer);

  bool repeats() const { return log_ != nullptr && log_->repeats(); }
  // FAILED_PRECONDITION where there is a recorder, which `call` does not allow.
  absl::Status Refuse(absl::string_view call) const;

  // A worker's lanes are cut; it has ended, after so many restarts, and is
  // replaced.
  absl::Status NoteCut(int64_t worker, int64_t producer);
  absl::Status NoteReplace(int64_t restarts, const WorkerDeath& death);
  // A batch [lanes, time] has arrived. In a repeat `run_before` is the log's.
  absl::Status NoteArrival(int64_t worker, int64_t sequence, int64_t run_before,
                           const TensorDict& batch);
  // The error of a call, which stays what it is.
  absl::Status NoteFailure(const absl::Status& error);
  // Whether a call is stopped, which is noted: as somebody asked, or as in the
  // run that is repeated.
  absl::StatusOr<bool> NoteStop(bool is_asked);

  // `death` where the worker has ended; in a repeat the log's, where it has
  // that next.
  absl::StatusOr<std::optional<WorkerDeath>> DeathOf(
      int64_t worker, bool has_ended, const WorkerDeath& death) const;

  // These of a repeat.
  // Makes the worker's parts, in place of those that it had. Null where those
  // of a worker that replaces another cannot be made: the log says whether they
  // could be in the run.
  absl::StatusOr<const WorkerCollector*> Start(const WorkerStart& start,
                                               absl::string_view argument,
                                               const TensorDict& statistics);
  // As RecordChannel::DrainOne: what the log has next of the worker, up to a
  // batch. Errors of its parts are DATA_LOSS: the run had none. Adds what a
  // batch has taken in the repeat.
  absl::StatusOr<bool> DrainOne(int64_t worker,
                                const SyncCollector::RunFrames& run, Sink& sink,
                                Source::Times* times);
  // Those of the batch that DrainOne writes.
  absl::StatusOr<TensorDict> Statistics(int64_t worker) const;
  // Whether the log has something of a worker next: DATA_LOSS where it has not,
  // and ABORTED where it ends, or a worker's parts have failed.
  absl::Status Wait();

 private:
  absl::Status Note(Decision::Kind kind, absl::Span<const int64_t> numbers);
  absl::Status Collect(const Arrival& arrival,
                       const SyncCollector::RunFrames& run, Sink& sink,
                       Source::Times* times);

  std::string caller_;
  const MultiCollectorOptions* options_ = nullptr;
  DecisionLog* log_ = nullptr;  // Null: none.
  int64_t part_ = -1;
  WorkerFunction function_;
  std::vector<std::unique_ptr<RepeatedWorker>> workers_;
  std::vector<absl::Status> made_;  // Of each worker.
  int64_t run_before_ = 0;          // Of the batch that DrainOne makes.
  bool has_waited_ = false;         // For what the log has next.
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_REPEATS_TEAM_LOG_H_
