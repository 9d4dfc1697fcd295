// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/multi_sync_collector.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"

namespace rill {

using workers_internal::CheckInterrupted;
using workers_internal::JoinedBatch;
using workers_internal::NextLook;
using workers_internal::WorkerTeam;

namespace {

// Workers that are a share of all, at least one. Rounding errors of the product
// do not count as another worker.
int64_t ShareOf(double share, int64_t workers) {
  constexpr double kRounding = 1e-9;
  const double exact = share * static_cast<double>(workers);
  return std::max<int64_t>(1, std::llround(std::ceil(exact - kRounding)));
}

}  // namespace

MultiSyncCollector::MultiSyncCollector(std::unique_ptr<WorkerTeam> team)
    : team_(std::move(team)) {
  if (const auto share = team_->options().preemptive_threshold) {
    enough_ = ShareOf(*share, team_->size());
  }
}

absl::StatusOr<std::unique_ptr<MultiSyncCollector>> MultiSyncCollector::Create(
    MultiCollectorOptions options) {
  RILL_ASSIGN_OR_RETURN(
      auto team, WorkerTeam::Create("MultiSyncCollector", std::move(options)));
  return absl::WrapUnique(new MultiSyncCollector(std::move(team)));
}

int64_t MultiSyncCollector::frames_per_batch() const {
  int64_t frames = 0;
  for (int64_t i = 0; i < team_->size(); ++i) {
    frames += team_->frames_per_batch(i);
  }
  return frames;
}

absl::Status MultiSyncCollector::MakeJoined() {
  if (joined_.has_value()) return absl::OkStatus();
  JoinedBatch::Options parts = {.spec = spec(),
                                .cat = team_->options().cat_results,
                                .lanes = team_->lanes(),
                                .may_be_short = enough_ > 0};
  for (int64_t i = 0; i < team_->size(); ++i) {
    parts.steps.push_back(team_->frames_per_batch(i) / team_->lanes());
  }
  RILL_ASSIGN_OR_RETURN(joined_, JoinedBatch::Create(parts));
  return absl::OkStatus();
}

absl::Status MultiSyncCollector::Interrupt() {
  if (enough_ == 0) {
    return FailedPrecondition(
        "MultiSyncCollector::Interrupt: preemptive_threshold: got none, want "
        "one; 1 leaves it to Interrupt");
  }
  team_->Interrupt();
  return absl::OkStatus();
}

void MultiSyncCollector::PreemptIfDue(int64_t first) {
  if (enough_ == 0) return;
  // Workers before `first` have delivered theirs in this round.
  int64_t made = first;
  for (int64_t i = first; i < team_->size(); ++i) {
    if (team_->HasMade(i)) ++made;
  }
  if (made >= enough_) team_->Interrupt();
}

absl::Status MultiSyncCollector::DeliverRound(Sink& sink) {
  team_->BeginRound();
  // All that the round still lacks are asked before the first is waited for. A
  // round that a sink stopped goes on where it was.
  for (int64_t i = place_.next_worker; i < team_->size(); ++i) {
    RILL_RETURN_IF_ERROR(team_->Ask(i, 1, place_.frames));
  }
  int64_t frames = 0;
  FunctionSink counted(
      [&](const TensorDict& batch, const WriteInfo& info) {
        // The sink may take its time.
        PreemptIfDue(place_.next_worker + 1);
        frames = batch.batch_shape().num_elements();
        return sink.Write(batch, info);
      },
      [&](int64_t producer, LaneRange lanes) {
        return sink.Cut(producer, lanes);
      });
  while (place_.next_worker < team_->size()) {
    RILL_ASSIGN_OR_RETURN(const bool is_there,
                          team_->Deliver(place_.next_worker, counted));
    if (is_there) {
      place_.frames += frames;
      ++place_.next_worker;
    } else {
      PreemptIfDue(place_.next_worker);
      RILL_RETURN_IF_ERROR(team_->Wait(NextLook(team_->options())));
      RILL_RETURN_IF_ERROR(
          CheckInterrupted("MultiSyncCollector", team_->options()));
    }
  }
  place_.next_worker = 0;
  return absl::OkStatus();
}

absl::Status MultiSyncCollector::CollectInto(Sink& sink) {
  RILL_RETURN_IF_ERROR(team_->CheckGoesOn(place_.frames, is_in_round()));
  return DeliverRound(sink);
}

absl::StatusOr<TensorDict> MultiSyncCollector::Next() {
  RILL_RETURN_IF_ERROR(team_->CheckGoesOn(place_.frames, is_in_round()));
  RILL_RETURN_IF_ERROR(MakeJoined());
  // The joined batch has every worker's part, so it begins with worker 0.
  place_.next_worker = 0;
  struct Part {
    int64_t worker;
    std::optional<TensorDict> rows;  // None: a cut of all its lanes.
    WriteInfo info;
  };
  std::vector<Part> parts;
  FunctionSink join(
      [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
        RILL_ASSIGN_OR_RETURN(TensorDict rows,
                              joined_->Add(place_.next_worker, batch));
        parts.push_back({place_.next_worker, std::move(rows), info});
        return absl::OkStatus();
      },
      [&](int64_t producer, LaneRange lanes) {
        parts.push_back({place_.next_worker,
                         std::nullopt,
                         {.producer = producer, .first_lane = lanes.first}});
        return absl::OkStatus();
      });
  const absl::Status status = DeliverRound(join);
  if (status.ok()) return joined_->Finish();
  // The call has failed, and the caller gets nothing: what was joined comes
  // again. A copy of it, since the next Next writes that memory.
  for (size_t i = parts.size(); i-- > 0;) {
    Part& part = parts[i];
    if (part.rows.has_value()) {
      RILL_ASSIGN_OR_RETURN(part.rows, part.rows->Clone());
      place_.frames -= part.rows->batch_shape().num_elements();
    }
    team_->PutBack(part.worker, std::move(part.rows), part.info);
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
