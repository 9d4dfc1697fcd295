// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/ensemble/offline_to_online.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

constexpr absl::string_view kCreate = "OfflineToOnlineReplayBuffer::Create";

}  // namespace

absl::StatusOr<std::unique_ptr<OfflineToOnlineReplayBuffer>>
OfflineToOnlineReplayBuffer::Create(Options options) {
  if (options.offline == nullptr) {
    return InvalidArgument(kCreate, ": offline: got null, want a ReplayBuffer");
  }
  if (options.online == nullptr || options.online == options.offline) {
    return InvalidArgument(kCreate, ": online: got ",
                           options.online == nullptr ? "null" : "`offline`",
                           ", want a ReplayBuffer of its own");
  }
  if (options.min_online_rows < 0 ||
      options.min_online_rows > options.online->capacity()) {
    return InvalidArgument(kCreate, ": min_online_rows: got ",
                           options.min_online_rows, ", want [0, ",
                           options.online->capacity(), "], its capacity");
  }
  if (options.offline_fraction == nullptr) {
    options.offline_fraction = [](int64_t) { return 0.5; };
  }
  RILL_ASSIGN_OR_RETURN(
      auto ensemble,
      ReplayBufferEnsemble::Create(
          {.members = {{.buffer = std::move(options.offline),
                        .name = "offline"},
                       {.buffer = std::move(options.online), .name = "online"}},
           .batch_size = options.batch_size,
           .transforms = std::move(options.transforms)}));
  auto buffer = std::unique_ptr<OfflineToOnlineReplayBuffer>(
      new OfflineToOnlineReplayBuffer(
          std::move(ensemble), std::move(options.offline_fraction),
          options.batch_size, options.min_online_rows));
  // The schedule's first value is looked at here.
  RILL_RETURN_IF_ERROR(buffer->SetShares()) << kCreate;
  return buffer;
}

OfflineToOnlineReplayBuffer::OfflineToOnlineReplayBuffer(
    std::unique_ptr<ReplayBufferEnsemble> ensemble, Schedule offline_fraction,
    int64_t batch_size, int64_t min_online_rows)
    : ensemble_(std::move(ensemble)),
      offline_fraction_(std::move(offline_fraction)),
      batch_size_(batch_size),
      min_online_rows_(min_online_rows) {}

absl::Status OfflineToOnlineReplayBuffer::SetShares() {
  // A batch that fails to be drawn uses up no number, so the schedule goes by
  // batches that were drawn.
  const int64_t batches = ensemble_->GetStats().batches;
  const double offline_share = offline_fraction_(batches);
  if (!(offline_share >= 0 && offline_share <= 1)) {
    return InvalidArgument(
        "OfflineToOnlineReplayBuffer::Sample: offline_fraction of batch ",
        batches, ": got ", offline_share, ", want [0, 1]");
  }
  if (online().size() < min_online_rows_) return ensemble_->SetShares({1, 0});
  return ensemble_->SetShares({offline_share, 1 - offline_share});
}

absl::Status OfflineToOnlineReplayBuffer::SampleInto(int64_t batch_size,
                                                     TensorDict* out) {
  // Shares are set for this very batch, so no other may come between.
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(SetShares());
  return ensemble_->SampleInto(batch_size, out);
}

absl::Status OfflineToOnlineReplayBuffer::SampleInto(TensorDict* out) {
  if (batch_size_ == 0) return ensemble_->SampleInto(out);  // Says what to do.
  return SampleInto(batch_size_, out);
}

absl::StatusOr<TensorDict> OfflineToOnlineReplayBuffer::Sample() {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(SampleInto(&batch));
  return batch;
}

absl::StatusOr<TensorDict> OfflineToOnlineReplayBuffer::Sample(
    int64_t batch_size) {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(SampleInto(batch_size, &batch));
  return batch;
}

absl::Status OfflineToOnlineReplayBuffer::UpdatePriorities(
    const TensorDict& batch, absl::Span<const float> priorities) {
  return ensemble_->UpdatePriorities(batch, priorities);
}

absl::StatusOr<ExtendResult> OfflineToOnlineReplayBuffer::Extend(
    const TensorDict& batch, const WriteInfo& info) {
  return online().Extend(batch, info);
}

absl::Status OfflineToOnlineReplayBuffer::Write(const TensorDict& batch,
                                                const WriteInfo& info) {
  return online().Write(batch, info);
}

absl::Status OfflineToOnlineReplayBuffer::Cut(int64_t producer,
                                              LaneRange lanes) {
  return online().Cut(producer, lanes);
}

absl::Status OfflineToOnlineReplayBuffer::Flush() { return online().Flush(); }

ReplayBufferEnsemble::Stats OfflineToOnlineReplayBuffer::GetStats() const {
  return ensemble_->GetStats();
}

absl::StatusOr<TensorDict> OfflineToOnlineReplayBuffer::SaveState() const {
  return ensemble_->SaveState();
}

absl::Status OfflineToOnlineReplayBuffer::LoadState(
    const TensorDict& state, const ReplayBuffer::OpenOptions& options) {
  absl::MutexLock lock(&mutex_);
  return ensemble_->LoadState(state, options);
}

}  // namespace rill
