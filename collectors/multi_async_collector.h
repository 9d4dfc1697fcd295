// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_MULTI_ASYNC_COLLECTOR_H_
#define RILL_COLLECTORS_MULTI_ASYNC_COLLECTOR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker_deaths.h"
#include "rill/collectors/workers/worker_team.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Workers that collect without waiting for one another or for the learner. A
// call hands out the batch of one worker; those that have one take turns, and
// all go on meanwhile. A worker is at most two batches ahead.
//
// Worker w steps what SyncCollector steps with WorkerSeed(seed, w), and gives
// the same batches in the same order; how those of several workers mix depends
// on time. So does what policies see of the run: the frames that were handed
// out when a batch was asked for, and since then as many of each worker as of
// this one.
// Batches are [lanes, time] of one worker. Workers that die, hang or fail are
// as MultiSyncCollector's.
//
// Thread-safety: that of Source.
// Cost: as MultiSyncCollector. Next is a copy that later calls do not change.
//
// Example (MultiAsyncCollectorTest.Example runs it):
//   MultiCollectorOptions options;
//   options.workers = 2;
//   options.worker = [](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
//     WorkerParts parts;
//     RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 8}));
//     return parts;
//   };
//   options.frames_per_batch = 1024;
//   RILL_ASSIGN_OR_RETURN(auto collector,
//                         MultiAsyncCollector::Create(std::move(options)));
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, collector->Next());  // [8, 64]
class MultiAsyncCollector final : public Source {
 public:
  // As MultiSyncCollector::Create; without preemptive_threshold and
  // cat_results.
  static absl::StatusOr<std::unique_ptr<MultiAsyncCollector>> Create(
      MultiCollectorOptions options);

  const TensorDictSpec& spec() const override { return team_->spec(); }
  // That were handed out.
  int64_t frames() const override { return place_.frames; }
  // Sums over the workers, which run side by side.
  const Times& times() const override { return team_->times(); }
  // Rows of a batch, which one worker makes; the most, where they differ.
  int64_t frames_per_batch() const;
  // Those that were dropped by max_staleness.
  int64_t stale_frames() const { return stale_frames_; }
  // Processes that were replaced.
  int64_t restarts() const { return team_->restarts(); }
  // Why they were.
  const WorkerDeaths& deaths() const { return team_->deaths(); }

  absl::StatusOr<TensorDict> Next() override;
  absl::Status CollectInto(Sink& sink) override;
  void Stop() override { team_->Stop(); }

  // Workers end the batch at hand, and wait for the next Next or CollectInto;
  // batches that they have made come first then. A worker that has ended is
  // replaced: UNAVAILABLE where max_restarts are used up.
  absl::Status Pause() { return team_->Pause(); }
  // Pauses too. The state has the batches that the workers are ahead, and cuts.
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

  // As MultiSyncCollector's; the second pauses too. Rows that max_staleness
  // drops count: the workers have seen them.
  absl::StatusOr<TensorDict> TransformStates() const {
    return team_->TransformStates();
  }
  absl::Status LoadTransformStates(const TensorDict& states) {
    return team_->LoadTransformStates(states);
  }

 private:
  explicit MultiAsyncCollector(
      std::unique_ptr<workers_internal::WorkerTeam> team)
      : team_(std::move(team)) {}

  // Whether max_staleness drops a batch.
  bool IsStale(const WriteInfo& info) const;

  std::unique_ptr<workers_internal::WorkerTeam> team_;
  int64_t stale_frames_ = 0;
  workers_internal::WorkerTeam::Place place_;  // Its worker is looked at first.
};

}  // namespace rill

#endif  // RILL_COLLECTORS_MULTI_ASYNC_COLLECTOR_H_
