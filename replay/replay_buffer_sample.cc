// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer's samples, and the priorities that come back for them.
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/log/absl_log.h"
#include "absl/strings/string_view.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/replay_buffer_state.h"
#include "rill/replay/rows/device_priorities.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/samplers/prioritized/priority_updater.h"

namespace rill {

absl::Status ReplayBuffer::State::CheckBatchSize() const {
  if (parts->samples->batch_size() > 0) return absl::OkStatus();
  return FailedPrecondition(
      "ReplayBuffer::Sample: Options::batch_size: got 0, want > 0; set it, or "
      "call Sample(batch_size)");
}

absl::Status ReplayBuffer::State::SampleInto(
    int64_t items, replay_internal::PlacedBatch* out) {
  // Before the pause is shared: a call that waits for writers must not keep a
  // Save or a Clear waiting.
  RILL_ASSIGN_OR_RETURN(auto permit, parts->writes->AwaitSample(items));
  absl::ReaderMutexLock pause(&pause_mutex);
  if (!parts->transforms->is_checked()) {
    RILL_RETURN_IF_ERROR(parts->transforms->CheckRows(parts->storage->spec(),
                                                      /*is_stored=*/true));
  }
  RILL_RETURN_IF_ERROR(parts->samples->Take(items, out));
  // Items count when they are handed out; an error gives the permit back.
  if (permit.has_value()) permit->Commit();
  return absl::OkStatus();
}

absl::Status ReplayBuffer::State::SampleAndWait(int64_t items,
                                                TensorDict* out) {
  replay_internal::PlacedBatch placed;
  // The caller's tensors go in and come back, after an error too, so that they
  // are reused.
  std::swap(placed.rows, *out);
  const absl::Status status = SampleInto(items, &placed);
  std::swap(placed.rows, *out);
  RILL_RETURN_IF_ERROR(status);
  const int64_t batch_size = parts->samples->batch_size();
  if (items != batch_size && batch_size > 0) {
    absl::call_once(batch_size_warning, [&] {
      ABSL_LOG(WARNING) << "ReplayBuffer::Sample: batch size: got " << items
                        << " where Options::batch_size is " << batch_size
                        << "; the call's is taken (said once a buffer)";
    });
  }
  if (placed.copied == nullptr) return absl::OkStatus();
  const absl::Status made = placed.copied->Synchronize();
  // A stream that failed works again once it was waited for.
  if (!made.ok()) parts->placement->AwaitAll();
  return made;
}

absl::Status ReplayBuffer::State::UpdatePriorities(
    absl::Span<const Draw> rows, absl::Span<const float> priorities) {
  absl::ReaderMutexLock pause(&pause_mutex);
  return CatchExceptions(
      [&] { return parts->sampler->UpdatePriorities(rows, priorities); },
      parts->sampler->name(), "::UpdatePriorities");
}

absl::StatusOr<TensorDictSpec> ReplayBuffer::SampleSpec() const {
  const replay_internal::BufferParts& parts = *state_->parts;
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  RILL_ASSIGN_OR_RETURN(TensorDictSpec spec,
                        parts.transforms->SampleSpec(parts.storage->spec()));
  if (parts.placement->device().has_value()) {
    spec.set_device(parts.placement->device());
  }
  return spec;
}

absl::StatusOr<TensorDict> ReplayBuffer::Sample(int64_t batch_size) {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(state_->SampleAndWait(batch_size, &batch));
  return batch;
}

absl::StatusOr<TensorDict> ReplayBuffer::Sample() {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(SampleInto(&batch));
  return batch;
}

absl::Status ReplayBuffer::SampleInto(TensorDict* out) {
  if (out != nullptr) {
    RILL_RETURN_IF_ERROR(state_->CheckBatchSize());
  }
  return SampleInto(batch_size(), out);
}

absl::Status ReplayBuffer::SampleInto(int64_t batch_size, TensorDict* out) {
  if (out == nullptr) {
    return InvalidArgument(
        "ReplayBuffer::SampleInto: out: got null, want a TensorDict");
  }
  return state_->SampleAndWait(batch_size, out);
}

absl::StatusOr<ReplayBuffer::PendingBatch> ReplayBuffer::SamplePending() {
  RILL_RETURN_IF_ERROR(state_->CheckBatchSize());
  replay_internal::PlacedBatch placed;
  RILL_RETURN_IF_ERROR(state_->SampleInto(batch_size(), &placed));
  return PendingBatch{.batch = std::move(placed.rows),
                      .copied = std::move(placed.copied)};
}

absl::Status ReplayBuffer::UpdatePriorities(
    const TensorDict& batch, absl::Span<const float> priorities) {
  constexpr absl::string_view kCaller = "ReplayBuffer::UpdatePriorities";
  RILL_ASSIGN_OR_RETURN(std::vector<Draw> draws,
                        replay_internal::DrawsOf(kCaller, batch));
  std::vector<float> spread;
  if (priorities.size() != draws.size()) {
    RILL_ASSIGN_OR_RETURN(std::vector<Draw> anchors,
                          replay_internal::AnchorsOf(kCaller, batch, draws));
    if (priorities.size() == anchors.size()) {
      draws = std::move(anchors);
    } else if (priorities.size() == 1) {
      spread.assign(draws.size(), priorities[0]);
      priorities = spread;
    }
  }
  return state_->UpdatePriorities(draws, priorities);
}

absl::Status ReplayBuffer::UpdatePriorities(const TensorDict& batch,
                                            const Tensor& priorities) {
  constexpr absl::string_view kCaller = "ReplayBuffer::UpdatePriorities";
  PriorityUpdater* const updater =
      state_->parts->sampler->traits().priority_updater.get();
  RILL_ASSIGN_OR_RETURN(
      const bool lie_together,
      replay_internal::LieWithPriorities(kCaller, updater, batch, priorities));
  if (lie_together) {
    absl::ReaderMutexLock pause(&state_->pause_mutex);
    return replay_internal::UpdateWhereTheyLie(kCaller, *updater, batch,
                                               priorities);
  }
  RILL_ASSIGN_OR_RETURN(const Tensor on_host,
                        replay_internal::PrioritiesOnHost(kCaller, priorities));
  RILL_ASSIGN_OR_RETURN(const absl::Span<const float> values,
                        on_host.Flat<float>());
  return UpdatePriorities(batch, values);
}

absl::Status ReplayBuffer::UpdatePriorities(
    absl::Span<const Draw> rows, absl::Span<const float> priorities) {
  return state_->UpdatePriorities(rows, priorities);
}

std::optional<PriorityMass> ReplayBuffer::priority_mass() const {
  const PriorityMassGauge* const mass =
      state_->parts->sampler->traits().priority_mass.get();
  if (mass == nullptr) return std::nullopt;
  return mass->Get();
}

absl::StatusOr<int64_t> ReplayBuffer::BatchesLeft() const {
  RILL_RETURN_IF_ERROR(state_->CheckBatchSize());
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  return state_->parts->samples->BatchesLeft();
}

absl::StatusOr<TensorDict> ReplayBuffer::ReadAll(LiveRowsShape shape) {
  absl::MutexLock pause(&state_->pause_mutex);
  return ReadLiveRows(*state_->parts->storage, shape);
}

}  // namespace rill
