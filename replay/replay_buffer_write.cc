// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer's writes.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/replay_buffer_state.h"
#include "rill/replay/sampling/sample_batches.h"

namespace rill {

absl::Status ReplayBuffer::State::Note(
    Decision::Kind kind, absl::Span<const int64_t> numbers) const {
  if (recorder == nullptr) return absl::OkStatus();
  return recorder->Note(kind, part, numbers);
}

absl::Status ReplayBuffer::State::NoteWrite(const WriteInfo& info,
                                            const TensorDict& batch) const {
  if (recorder == nullptr) return absl::OkStatus();
  // The last dimension is time, the one before it lanes.
  const auto& shape = batch.batch_shape();
  const int64_t steps = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  return recorder->Note(
      Decision::Kind::kWrite, part,
      {info.first_lane, steps == 0 ? 0 : shape.num_elements() / steps, steps},
      batch, {});
}

absl::Status ReplayBuffer::State::NotePatch(
    int64_t rows, const TensorDict& values,
    absl::Span<const Slot> slots) const {
  if (recorder == nullptr) return absl::OkStatus();
  std::vector<absl::string_view> pieces;
  if (!slots.empty()) pieces.push_back(replay_internal::BytesOf(slots));
  return recorder->Note(Decision::Kind::kPatch, part, {rows}, values, pieces);
}

absl::StatusOr<ExtendResult> ReplayBuffer::Extend(const TensorDict& batch,
                                                  const WriteInfo& info) {
  return Extend(batch, info, nullptr);
}

absl::StatusOr<ExtendResult> ReplayBuffer::Extend(const TensorDict& batch,
                                                  const WriteInfo& info,
                                                  std::vector<Draw>* rows) {
  State& state = *state_;
  if (rows != nullptr) rows->clear();
  // Before the pause is shared, as for a sample.
  RILL_ASSIGN_OR_RETURN(auto permit, state.parts->writes->AwaitInsert(
                                         batch.batch_shape().num_elements()));
  absl::ReaderMutexLock pause(&state.pause_mutex);
  absl::StatusOr<ExtendResult> result = state.parts->writes->Extend(
      batch, info, state.parts->samples->batch_number(), rows);
  // Rows count when they are stored; those that a writer dropped do not.
  if (result.ok() && permit.has_value()) permit->Commit(result->rows_written);
  if (result.ok()) {
    RILL_RETURN_IF_ERROR(state.NoteWrite(info, batch));
  }
  return result;
}

absl::Status ReplayBuffer::Write(const TensorDict& batch,
                                 const WriteInfo& info) {
  return Extend(batch, info).status();
}

absl::Status ReplayBuffer::Cut(int64_t /*producer*/, LaneRange lanes) {
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  RILL_RETURN_IF_ERROR(state_->parts->writes->Cut(lanes));
  return state_->Note(Decision::Kind::kEndLanes, {lanes.first, lanes.count});
}

absl::Status ReplayBuffer::Flush() { return absl::OkStatus(); }

absl::Status ReplayBuffer::WriteAt(absl::Span<const Slot> slots,
                                   const TensorDict& rows) {
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  RILL_RETURN_IF_ERROR(state_->parts->writes->WriteAt(slots, rows));
  return state_->NotePatch(static_cast<int64_t>(slots.size()), rows, slots);
}

absl::StatusOr<PatchResult> ReplayBuffer::UpdateIfPresent(
    const TensorDict& patch, const PatchOptions& options) {
  absl::ReaderMutexLock pause(&state_->pause_mutex);
  RILL_ASSIGN_OR_RETURN(const PatchResult result,
                        state_->parts->writes->Patch(patch, options));
  RILL_RETURN_IF_ERROR(
      state_->NotePatch(patch.batch_shape().num_elements(), patch, {}));
  return result;
}

absl::Status ReplayBuffer::Clear() {
  State& state = *state_;
  absl::MutexLock pause(&state.pause_mutex);
  // Workers must not gather rows while these go.
  state.parts->samples->AwaitMade();
  RILL_RETURN_IF_ERROR(state.parts->writes->Clear());
  state.parts->samples->Forget();
  return state.Note(Decision::Kind::kClear, {});
}

absl::Status ReplayBuffer::State::InsertTransform(
    std::optional<int64_t> place, std::unique_ptr<BatchTransform> transform) {
  absl::MutexLock pause(&pause_mutex);
  // Batches ahead go through the transforms that were there when they were
  // drawn.
  parts->samples->AwaitMade();
  return parts->transforms->Insert(place, std::move(transform),
                                   parts->storage->spec(),
                                   parts->samples->batch_number());
}

absl::Status ReplayBuffer::AppendTransform(
    std::unique_ptr<BatchTransform> transform) {
  return state_->InsertTransform(std::nullopt, std::move(transform));
}

absl::Status ReplayBuffer::InsertTransform(
    int64_t place, std::unique_ptr<BatchTransform> transform) {
  return state_->InsertTransform(place, std::move(transform));
}

void ReplayBuffer::Close() {
  RateLimiter* const limiter = state_->parts->writes->rate_limiter();
  if (limiter != nullptr) limiter->Close();
}

}  // namespace rill
