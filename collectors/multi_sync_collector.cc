// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/multi_sync_collector.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/shape.h"

namespace rill {

absl::StatusOr<std::unique_ptr<MultiSyncCollector>> MultiSyncCollector::Create(
    MultiCollectorOptions options) {
  RILL_ASSIGN_OR_RETURN(
      auto team, workers_internal::WorkerTeam::Create("MultiSyncCollector",
                                                      std::move(options)));
  return absl::WrapUnique(new MultiSyncCollector(std::move(team)));
}

absl::Status MultiSyncCollector::DeliverRound(Sink& sink) {
  for (int64_t i = place_.next_worker; i < team_->size(); ++i) {
    RILL_RETURN_IF_ERROR(team_->Ask(i, 1));
  }
  while (place_.next_worker < team_->size()) {
    RILL_ASSIGN_OR_RETURN(const bool is_there,
                          team_->Deliver(place_.next_worker, sink));
    if (is_there) {
      place_.frames += team_->frames_per_batch();
      ++place_.next_worker;
    } else {
      RILL_RETURN_IF_ERROR(team_->Wait());
    }
  }
  place_.next_worker = 0;
  return absl::OkStatus();
}

absl::Status MultiSyncCollector::CollectInto(Sink& sink) {
  RILL_RETURN_IF_ERROR(team_->CheckGoesOn(place_));
  return DeliverRound(sink);
}

absl::StatusOr<TensorDict> MultiSyncCollector::Next() {
  RILL_RETURN_IF_ERROR(team_->CheckGoesOn(place_));
  const int64_t lanes = team_->lanes();
  if (batch_.empty()) {
    RILL_ASSIGN_OR_RETURN(batch_,
                          spec().Zero({team_->size() * lanes,
                                       team_->frames_per_batch() / lanes}));
  }
  // A round that a sink has got in part begins anew: Next hands out whole ones.
  place_.next_worker = 0;
  struct Part {
    TensorDict rows;
    WriteInfo info;
  };
  std::vector<Part> parts;
  FunctionSink join(
      [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
        RILL_ASSIGN_OR_RETURN(TensorDict rows,
                              batch_.Slice(0, place_.next_worker * lanes,
                                           (place_.next_worker + 1) * lanes));
        RILL_RETURN_IF_ERROR(rows.CopyFrom(batch));
        parts.push_back({std::move(rows), info});
        return absl::OkStatus();
      });
  const absl::Status status = DeliverRound(join);
  if (status.ok()) return batch_;
  for (size_t i = 0; i < parts.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const TensorDict rows, parts[i].rows.Clone());
    team_->PutBack(static_cast<int64_t>(i), rows, parts[i].info);
    place_.frames -= team_->frames_per_batch();
  }
  place_.next_worker = 0;
  return status;
}

absl::StatusOr<TensorDict> MultiSyncCollector::SaveState() const {
  return team_->SaveState(place_);
}

absl::Status MultiSyncCollector::LoadState(const TensorDict& state) {
  RILL_ASSIGN_OR_RETURN(place_, team_->LoadState(state));
  return absl::OkStatus();
}

}  // namespace rill
