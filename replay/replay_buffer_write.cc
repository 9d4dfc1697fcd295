// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer's writes.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/replay_buffer_state.h"
#include "rill/replay/write_capture.h"

namespace rill {

absl::StatusOr<TensorDict> ReplayBuffer::State::Unsqueezed(
    const TensorDict& batch) const {
  if (batch.batch_shape().rank() != 1) return batch;
  if (storage->lanes().count != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("ReplayBuffer::Extend: batch shape: got ",
                     batch.batch_shape().ToString(),
                     ", want [lanes, time]: Options::lanes of the storage is ",
                     storage->lanes().count));
  }
  return batch.Unsqueeze(0);
}

// Only where there are transforms, or none was asked yet whether it can work on
// these rows.
absl::StatusOr<ExtendResult> ReplayBuffer::State::TransformAndStore(
    const TensorDict& batch, const WriteInfo& info) {
  RILL_ASSIGN_OR_RETURN(TensorDict rows, Unsqueezed(batch));
  RILL_ASSIGN_OR_RETURN(const replay_internal::TransformStage::Undo undo,
                        transforms->Inverse(batch_number, &rows));
  absl::StatusOr<ExtendResult> result = ExtendResult();
  const TensorDictSpec spec = storage->spec();
  absl::Status status = spec.empty()
                            ? transforms->CheckRows(TensorDictSpec::Of(rows),
                                                    /*is_stored=*/false)
                            : transforms->CheckRows(spec, /*is_stored=*/true);
  if (status.ok()) {
    result = Store(rows, info);
    status = result.status();
  }
  if (status.ok()) return result;
  transforms->TakeBack(undo);
  return status;
}

absl::StatusOr<ExtendResult> ReplayBuffer::State::Store(const TensorDict& rows,
                                                        const WriteInfo& info) {
  const Shape& shape = rows.batch_shape();
  const bool is_flat = shape.rank() == 1;
  replay_internal::AppendWindow window;
  window.lanes = storage->lanes();
  window.first_lane = info.first_lane;
  // The storage refuses other shapes. No more rows are overwritten than there
  // are.
  window.num_lanes =
      is_flat || shape.rank() == 0 ? 1 : std::min(shape[0], window.lanes.count);
  window.steps = shape.rank() == 0
                     ? 0
                     : std::min(shape[is_flat ? 0 : 1], window.lanes.capacity);
  int64_t steps_in_window = 0;
  gate.BeginWrite();
  if (!writer->appends_all()) {
    gate.WaitForAll();
  } else if (storage->asks_before_overwriting()) {
    gate.WillRetire(window.rows());
  } else {
    if (gate.HoldsAny()) window.cursors = storage->cursors();
    steps_in_window = window.steps;
    gate.WaitForRows(std::move(window));
  }
  absl::StatusOr<ExtendResult> result = writer->Extend(rows, info);
  gate.EndWrite(steps_in_window);
  if (result.ok()) rows_written += result->rows_written;
  return result;
}

absl::StatusOr<ExtendResult> ReplayBuffer::Extend(const TensorDict& batch,
                                                  const WriteInfo& info) {
  State& state = *state_;
  std::optional<RateLimiter::Permit> permit;
  const int64_t rows = batch.batch_shape().num_elements();
  if (state.rate_limiter != nullptr && rows > 0) {
    RILL_ASSIGN_OR_RETURN(
        permit, state.rate_limiter->AwaitInsert(
                    rows, Clock::System().Now() + state.rate_limit_timeout));
  }
  absl::ReaderMutexLock pause(&state.pause_mutex);
  absl::StatusOr<ExtendResult> result =
      state.transforms->is_empty() && state.transforms->is_checked()
          ? state.Store(batch, info)
          : state.TransformAndStore(batch, info);
  if (result.ok() && permit.has_value()) permit->Commit(result->rows_written);
  return result;
}

absl::StatusOr<ExtendResult> ReplayBuffer::Extend(const TensorDict& batch,
                                                  const WriteInfo& info,
                                                  std::vector<Draw>* rows) {
  if (rows == nullptr) return Extend(batch, info);
  rows->clear();
  const replay_internal::WriteCapture capture(&state_->writes,
                                              state_->sampler.get(), rows);
  absl::StatusOr<ExtendResult> result = Extend(batch, info);
  if (!result.ok()) rows->clear();
  return result;
}

absl::Status ReplayBuffer::Write(const TensorDict& batch,
                                 const WriteInfo& info) {
  return Extend(batch, info).status();
}

absl::Status ReplayBuffer::Flush() { return absl::OkStatus(); }

absl::Status ReplayBuffer::WriteAt(absl::Span<const Slot> slots,
                                   const TensorDict& rows) {
  State& state = *state_;
  absl::ReaderMutexLock pause(&state.pause_mutex);
  state.gate.BeginWrite();
  state.gate.WaitForRows(slots);
  const absl::Status status = state.writer->WriteAt(slots, rows);
  state.gate.EndWrite(0);
  return status;
}

absl::Status ReplayBuffer::Clear() {
  State& state = *state_;
  absl::MutexLock pause(&state.pause_mutex);
  absl::MutexLock lock(&state.queue_mutex);
  state.AwaitQueue();
  RILL_RETURN_IF_ERROR(state.storage->Clear());
  if (state.rate_limiter != nullptr) {
    RILL_RETURN_IF_ERROR(state.rate_limiter->LoadState({}));
  }
  for (auto& job : state.ahead) state.spare.push_back(std::move(job));
  state.ahead.clear();
  return absl::OkStatus();
}

absl::Status ReplayBuffer::State::InsertTransform(
    std::optional<int64_t> place, std::unique_ptr<Transform> transform) {
  {
    absl::MutexLock lock(&queue_mutex);
    AwaitQueue();
  }
  return transforms->Insert(place, std::move(transform), storage->spec(),
                            batch_number);
}

absl::Status ReplayBuffer::AppendTransform(
    std::unique_ptr<Transform> transform) {
  absl::MutexLock pause(&state_->pause_mutex);
  return state_->InsertTransform(std::nullopt, std::move(transform));
}

absl::Status ReplayBuffer::InsertTransform(
    int64_t place, std::unique_ptr<Transform> transform) {
  absl::MutexLock pause(&state_->pause_mutex);
  return state_->InsertTransform(place, std::move(transform));
}

void ReplayBuffer::Close() {
  if (state_->rate_limiter != nullptr) state_->rate_limiter->Close();
}

}  // namespace rill
