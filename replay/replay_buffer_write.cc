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
  TensorDict before;
  uint64_t change = 0;
  {
    absl::MutexLock lock(&transforms_mutex);
    RILL_ASSIGN_OR_RETURN(before, transforms->SaveState());
    if (!before.empty()) {
      // What it learns comes after what the batches teach it that were drawn
      // before this call.
      const auto is_last = [this, drawn = batch_number.load()] {
        transforms_mutex.AssertReaderHeld();
        return transforms_turn >= drawn;
      };
      if (!is_last()) bell.Ring();
      transforms_mutex.Await(absl::Condition(&is_last));
      RILL_ASSIGN_OR_RETURN(before, transforms->SaveState());
    }
    RILL_RETURN_IF_ERROR(transforms->Inverse(&rows));
    change = ++transforms_changes;
  }
  absl::StatusOr<ExtendResult> result = ExtendResult();
  const TensorDictSpec spec = storage->spec();
  absl::Status status = spec.empty()
                            ? CheckForward(TensorDictSpec::Of(rows), false)
                            : CheckForward(spec);
  if (status.ok()) {
    result = Store(rows, info);
    status = result.status();
  }
  if (status.ok()) return result;
  // The inverse of a write that then fails has not happened, unless others
  // have gone on from it.
  absl::MutexLock lock(&transforms_mutex);
  // A transform takes what it has just saved.
  if (change == transforms_changes) transforms->LoadState(before).IgnoreError();
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
      !state.has_transforms && state.is_forward_checked
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
  absl::MutexLock lock(&queue_mutex);
  AwaitQueue();
  const bool was_checked = is_forward_checked;
  int64_t at = 0;
  {
    absl::MutexLock transforms_lock(&transforms_mutex);
    at = place.value_or(static_cast<int64_t>(transforms->transforms().size()));
    RILL_RETURN_IF_ERROR(transforms->Insert(at, std::move(transform)))
        << "ReplayBuffer::InsertTransform";
  }
  is_forward_checked = false;
  const absl::Status status = CheckForward(storage->spec());
  absl::MutexLock transforms_lock(&transforms_mutex);
  if (!status.ok()) {
    is_forward_checked = was_checked;
    transforms->Remove(at).IgnoreError();
    return status;
  }
  has_transforms = true;
  ++transforms_changes;
  // Batches that needed none had no turn.
  transforms_turn = batch_number;
  return absl::OkStatus();
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
