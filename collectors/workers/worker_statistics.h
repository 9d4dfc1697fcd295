// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_WORKER_STATISTICS_H_
#define RILL_COLLECTORS_WORKERS_WORKER_STATISTICS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/collectors/workers/statistics_slots.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// The statistics of the transforms of a collector's workers, over the rows that
// were handed out. They are dictionaries as SyncCollector::TransformStates
// gives them; empty ones where no transform has any, and all of this is free.
//
// A worker's are those of its last batch that was handed out. All workers begin
// with one state, the start, and a replaced one with what its number had. So
// the statistics of all are the start and what each has learned since.
//
// Thread-safety: thread-compatible.
class WorkerStatistics {
 public:
  // Nothing, until `fresh` is known: those of a worker that has seen no row.
  WorkerStatistics() = default;
  // INVALID_ARGUMENT where a transform's statistics cannot be merged.
  static absl::StatusOr<WorkerStatistics> Create(const TensorDict& fresh,
                                                 int64_t workers,
                                                 int64_t depth);

  const TensorDict& fresh() const { return fresh_; }
  // For workers to attach; -1: there is nothing to write.
  int fd() const { return slots_ == nullptr ? -1 : slots_->fd(); }

  // Those of a batch that has arrived, to be handed out.
  absl::StatusOr<TensorDict> Read(int64_t worker, int64_t sequence) const;
  // The batch to which these belong was handed out.
  void HandOut(int64_t worker, TensorDict statistics);
  // The last one was not after all; its statistics.
  TensorDict TakeBack(int64_t worker);
  // Of a worker's rows that were handed out.
  const TensorDict& Of(int64_t worker) const;
  // The worker is replaced by one that begins with Of(worker).
  void Replace(int64_t worker);

  // Of the rows of all workers that were handed out.
  absl::StatusOr<TensorDict> Merged() const;

  // FAILED_PRECONDITION where Restart would refuse the states.
  absl::Status Check(const TensorDict& states) const;
  // All workers go on from `states`. `waiting` are the statistics of batches
  // that each worker has made before that and that were not handed out, in
  // order: they become those that their rows add to `states`.
  absl::Status Restart(const TensorDict& states,
                       const std::vector<std::vector<TensorDict*>>& waiting);

  // Entries below `statistics/`.
  void Save(StateWriter* state) const;
  // As saved. A state of before there were such entries has those that each of
  // the workers' collectors holds. FAILED_PRECONDITION, unchanged, where they
  // do not fit.
  absl::Status Load(const StateReader& state,
                    const std::vector<const TensorDict*>& collectors);

 private:
  struct Worker {
    TensorDict now;
    TensorDict before;   // Of the batch before the last.
    TensorDict carried;  // Rows beside those that it counts itself.
  };

  absl::StatusOr<TensorDict> MergeAll(const TensorDict& start,
                                      const std::vector<Worker>& workers) const;

  TensorDict fresh_;
  std::shared_ptr<StatisticsSlots> slots_;
  TensorDict start_;
  std::vector<Worker> workers_;
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_WORKER_STATISTICS_H_
