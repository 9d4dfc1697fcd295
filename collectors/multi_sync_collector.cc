// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/multi_sync_collector.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/workers/frames_state.h"
#include "rill/tensordict/shape.h"

namespace rill {

absl::StatusOr<std::unique_ptr<MultiSyncCollector>> MultiSyncCollector::Create(
    MultiCollectorOptions options) {
  RILL_ASSIGN_OR_RETURN(
      auto team, workers_internal::WorkerTeam::Create("MultiSyncCollector",
                                                      std::move(options)));
  return absl::WrapUnique(new MultiSyncCollector(std::move(team)));
}

absl::Status MultiSyncCollector::CheckGoesOn() {
  if (is_stopped_.exchange(false, std::memory_order_relaxed)) {
    return absl::CancelledError(
        "MultiSyncCollector::Next: stopped; call again to go on");
  }
  return workers_internal::CheckTotal("MultiSyncCollector", frames_,
                                      team_->options().total_frames);
}

absl::Status MultiSyncCollector::DeliverRound(Sink& sink) {
  for (int64_t i = next_worker_; i < team_->size(); ++i) {
    RILL_RETURN_IF_ERROR(team_->Ask(i, 1));
  }
  while (next_worker_ < team_->size()) {
    RILL_ASSIGN_OR_RETURN(const bool is_there,
                          team_->Deliver(next_worker_, sink));
    if (is_there) {
      frames_ += team_->frames_per_batch();
      ++next_worker_;
    } else {
      RILL_RETURN_IF_ERROR(team_->Wait());
    }
  }
  next_worker_ = 0;
  return absl::OkStatus();
}

absl::Status MultiSyncCollector::CollectInto(Sink& sink) {
  RILL_RETURN_IF_ERROR(CheckGoesOn());
  return DeliverRound(sink);
}

absl::StatusOr<TensorDict> MultiSyncCollector::Next() {
  RILL_RETURN_IF_ERROR(CheckGoesOn());
  const int64_t lanes = team_->lanes();
  if (batch_.empty()) {
    RILL_ASSIGN_OR_RETURN(batch_,
                          spec().Zero({team_->size() * lanes,
                                       team_->frames_per_batch() / lanes}));
  }
  // A round that a sink has got in part begins anew: Next hands out whole ones.
  next_worker_ = 0;
  struct Part {
    TensorDict rows;
    WriteInfo info;
  };
  std::vector<Part> parts;
  FunctionSink join(
      [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
        RILL_ASSIGN_OR_RETURN(
            TensorDict rows,
            batch_.Slice(0, next_worker_ * lanes, (next_worker_ + 1) * lanes));
        RILL_RETURN_IF_ERROR(rows.CopyFrom(batch));
        parts.push_back({std::move(rows), info});
        return absl::OkStatus();
      });
  const absl::Status status = DeliverRound(join);
  if (status.ok()) return batch_;
  for (size_t i = 0; i < parts.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const TensorDict rows, parts[i].rows.Clone());
    team_->PutBack(static_cast<int64_t>(i), rows, parts[i].info);
    frames_ -= team_->frames_per_batch();
  }
  next_worker_ = 0;
  return status;
}

absl::StatusOr<TensorDict> MultiSyncCollector::SaveState() const {
  RILL_ASSIGN_OR_RETURN(TensorDict state, team_->SaveState());
  RILL_RETURN_IF_ERROR(workers_internal::SaveFrames(
      {.frames = frames_, .next_worker = next_worker_}, &state));
  return state;
}

absl::Status MultiSyncCollector::LoadState(const TensorDict& state) {
  RILL_ASSIGN_OR_RETURN(const auto place,
                        workers_internal::LoadFrames(state, team_->size()));
  RILL_RETURN_IF_ERROR(team_->LoadState(state));
  frames_ = place.frames;
  next_worker_ = place.next_worker;
  return absl::OkStatus();
}

}  // namespace rill
