// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_MULTI_SYNC_COLLECTOR_H_
#define RILL_COLLECTORS_MULTI_SYNC_COLLECTOR_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/collectors/workers/joined_batch.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker_deaths.h"
#include "rill/collectors/workers/worker_team.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Workers that collect side by side, each its part of every batch: the next
// batch begins when it is asked for, so that it is made with the newest
// weights. Workers are threads, or processes (workers/worker_main.h).
//
// Worker w steps what SyncCollector steps with WorkerSeed(seed, w), and gives
// the same rows; policies see the frames of all workers. Next joins the
// workers' batches: [workers * lanes, time], or as cat_results says.
// CollectInto writes one batch a worker, in their order. `policy_version` and
// `collector/traj_ids` are as SyncCollector's.
//
// preemptive_threshold, and Interrupt, end batches early: a worker then makes
// fewer steps, at least one, and its next batch goes on from there, within the
// same episodes. No step is lost or made twice.
// - CollectInto writes the rows that exist, [lanes, steps].
// - Next along time leaves out what is missing.
// - Next along lanes and stacked pads: missing rows are zeros, with
//   `collector/traj_ids` -1. `collector/mask` bool [..., time], which spec()
//   does not name, is false there. With the option every batch has it, and
//   also where frames_per_worker differ.
//
// A process that dies, or hangs past step_timeout or batch_timeout, is
// replaced: its open trajectories are cut in the sink, and the batch it was
// making is made anew. Batches of other workers are not lost. Where
// max_restarts are used up, UNAVAILABLE names the worker and how it ended. An
// error of a worker's environment, policy or transform comes back from the call
// under way, with its text, and a thread's with its payloads. No frame of that
// worker's batch counts, and the next call goes on.
//
// Thread-safety: that of Source; Interrupt is thread-safe.
// Cost: a worker steps into shared memory, and CollectInto hands views of that
//   to the sink: no copy between. Next is one copy of the bytes. A batch of a
//   worker costs two messages, some 10 us. One that ends early is copied twice
//   in its worker. With preemptive_threshold a worker reads a number a step.
//
// Example (MultiSyncCollectorTest.Example runs it):
//   MultiCollectorOptions options;
//   options.workers = 2;
//   options.worker = [](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
//     WorkerParts parts;
//     RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 8}));
//     return parts;
//   };
//   options.frames_per_batch = 1024;
//   RILL_ASSIGN_OR_RETURN(auto collector,
//                         MultiSyncCollector::Create(std::move(options)));
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, collector->Next());  // [16, 64]
class MultiSyncCollector final : public Source {
 public:
  // INVALID_ARGUMENT names the option; an error of a worker's function comes
  // back with the worker's number and its text.
  static absl::StatusOr<std::unique_ptr<MultiSyncCollector>> Create(
      MultiCollectorOptions options);

  const TensorDictSpec& spec() const override { return team_->spec(); }
  // Without those that pad.
  int64_t frames() const override { return place_.frames; }
  // Sums over the workers, which run side by side.
  const Times& times() const override { return team_->times(); }
  // Whether a call wrote the batches of some workers and not of all. The next
  // one goes on with the others, also where total_frames were handed out.
  bool is_in_round() const { return place_.next_worker != 0; }
  // Rows of all workers together, in a round that nobody interrupts.
  int64_t frames_per_batch() const;
  // Processes that were replaced.
  int64_t restarts() const { return team_->restarts(); }
  // Why they were.
  const WorkerDeaths& deaths() const { return team_->deaths(); }

  // Errors leave nothing lost: what was made is part of a later batch.
  // Each call hands out one batch of every worker. So after a CollectInto that
  // a sink stopped halfway, Next has the batches that the sink did not get
  // beside the following ones of the other workers.
  absl::StatusOr<TensorDict> Next() override;
  absl::Status CollectInto(Sink& sink) override;
  void Stop() override { team_->Stop(); }
  // Workers end the batches that they make now after the step at hand, so that
  // the call under way returns soon. Without one nothing happens to the next.
  // FAILED_PRECONDITION without preemptive_threshold.
  absl::Status Interrupt();

  // The state of all workers, with the batches that they have made for a call
  // that failed or was refused. A worker that has ended is replaced:
  // UNAVAILABLE where max_restarts are used up.
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

  // As SyncCollector's, over the rows of all workers that were handed out. With
  // decay 1 a VecNorm's are to the bit those of one that has seen these rows
  // alone, whatever workers have died. A worker that replaces another goes on
  // with the statistics of the one before it, frozen ones too.
  absl::StatusOr<TensorDict> TransformStates() const {
    return team_->TransformStates();
  }
  // All workers go on with these: the next batch of each begins with a reset of
  // all lanes, and cuts what the sink holds open. Rows that they see from then
  // on are added to them, and so are those that were made and not handed out.
  // Errors as SyncCollector's, and of workers.
  absl::Status LoadTransformStates(const TensorDict& states) {
    return team_->LoadTransformStates(states);
  }

 private:
  explicit MultiSyncCollector(
      std::unique_ptr<workers_internal::WorkerTeam> team);

  absl::Status MakeJoined();
  // One batch of each worker from place_.next_worker on, in order.
  absl::Status DeliverRound(Sink& sink);
  // Interrupts the others, where as many workers as preemptive_threshold says
  // have made their batch. Those before `first` have.
  void PreemptIfDue(int64_t first);

  std::unique_ptr<workers_internal::WorkerTeam> team_;
  std::optional<workers_internal::JoinedBatch> joined_;  // Of Next.
  int64_t enough_ = 0;  // Workers of preemptive_threshold; 0: there is none.
  // Its worker is the first whose part the round has not got.
  workers_internal::WorkerTeam::Place place_;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_MULTI_SYNC_COLLECTOR_H_
