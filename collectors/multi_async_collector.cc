// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/multi_async_collector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dim_names.h"

namespace rill {

using workers_internal::CheckInterrupted;
using workers_internal::NextLook;
using workers_internal::WorkerTeam;

absl::StatusOr<std::unique_ptr<MultiAsyncCollector>>
MultiAsyncCollector::Create(MultiCollectorOptions options) {
  if (options.preemptive_threshold.has_value() ||
      options.cat_results != CatResults::kLanes) {
    return InvalidArgument(
        "MultiAsyncCollector: preemptive_threshold or cat_results: got a "
        "value, want none: no worker waits for another, and batches are of "
        "one; take MultiSyncCollector");
  }
  RILL_ASSIGN_OR_RETURN(
      auto team, WorkerTeam::Create("MultiAsyncCollector", std::move(options)));
  return absl::WrapUnique(new MultiAsyncCollector(std::move(team)));
}

int64_t MultiAsyncCollector::frames_per_batch() const {
  int64_t most = 0;
  for (int64_t i = 0; i < team_->size(); ++i) {
    most = std::max(most, team_->frames_per_batch(i));
  }
  return most;
}

// By the newest version in the batch: frames of it were made with older
// weights, never with newer ones.
bool MultiAsyncCollector::IsStale(const WriteInfo& info) const {
  const MultiCollectorOptions& options = team_->options();
  return options.max_staleness >= 0 &&
         info.policy_version + options.max_staleness <
             options.weights->version();
}

absl::Status MultiAsyncCollector::CollectInto(Sink& sink) {
  RILL_RETURN_IF_ERROR(team_->CheckGoesOn(place_.frames));
  for (int64_t i = 0; i < team_->size(); ++i) {
    RILL_RETURN_IF_ERROR(team_->Ask(i, WorkerTeam::kDepth, place_.frames));
  }
  bool was_stale = false;
  FunctionSink fresh(
      [&](const TensorDict& batch, const WriteInfo& info) {
        if (!IsStale(info)) return sink.Write(batch, info);
        // The batch is dropped, so its lanes' trajectories have a gap: the sink
        // ends them where they are.
        const LaneRange lanes = {.first = info.first_lane,
                                 .count = batch.batch_shape()[0]};
        const absl::Status cut = sink.Cut(info.producer, lanes);
        was_stale = cut.ok();
        return cut;
      },
      [&](int64_t producer, LaneRange lanes) {
        return sink.Cut(producer, lanes);
      });
  // A worker that has ended is found, however many batches others have.
  RILL_RETURN_IF_ERROR(team_->Wait(absl::InfinitePast()));
  while (true) {
    // Workers are looked at in turn, beginning behind the one that was
    // delivered last: a fast worker cannot keep the batches of others back.
    for (int64_t i = 0; i < team_->size(); ++i) {
      const int64_t worker = (place_.next_worker + i) % team_->size();
      RILL_ASSIGN_OR_RETURN(const bool is_there, team_->Deliver(worker, fresh));
      if (!is_there) continue;
      place_.next_worker = (worker + 1) % team_->size();
      const bool is_stale = std::exchange(was_stale, false);
      (is_stale ? stale_frames_ : place_.frames) +=
          team_->frames_per_batch(worker);
      RILL_RETURN_IF_ERROR(
          team_->Ask(worker, WorkerTeam::kDepth, place_.frames));
      if (!is_stale) return absl::OkStatus();
    }
    RILL_RETURN_IF_ERROR(team_->Wait(NextLook(team_->options())));
    RILL_RETURN_IF_ERROR(
        CheckInterrupted("MultiAsyncCollector", team_->options()));
  }
}

absl::StatusOr<TensorDict> MultiAsyncCollector::Next() {
  TensorDict copy;
  FunctionSink sink([&](const TensorDict& batch,
                        const WriteInfo& /*info*/) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(copy, batch.Clone());
    return copy.SetDimNames({std::string(kLanesName), std::string(kTimeName)});
  });
  RILL_RETURN_IF_ERROR(CollectInto(sink));
  return copy;
}

absl::StatusOr<TensorDict> MultiAsyncCollector::SaveState() const {
  return team_->SaveState(place_);
}

absl::Status MultiAsyncCollector::LoadState(const TensorDict& state) {
  RILL_ASSIGN_OR_RETURN(place_, team_->LoadState(state));
  return absl::OkStatus();
}

}  // namespace rill
