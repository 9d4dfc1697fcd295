// SPDX-License-Identifier: Apache-2.0
// Where batches go to a device, each job gathers into page-locked memory that
// it keeps. One stream copies, and the batch has the event of its copy. The
// memory is written again once that event is complete. SampleInto waits for the
// event, SamplePending hands it out.
#include "rill/replay/sampling/placement.h"

#include "rill/base/status_macros.h"

namespace rill::replay_internal {

absl::Status Placement::Staging::Await() {
  const absl::Status status =
      copied_ == nullptr ? absl::OkStatus() : copied_->Synchronize();
  copied_ = nullptr;
  in_flight_.clear();
  return status;
}

absl::StatusOr<std::unique_ptr<Placement>> Placement::Create(
    const Options& options) {
  std::optional<Stream> copies;
  if (options.device.has_value() && !options.device->is_cpu() &&
      options.storage_device.is_cpu()) {
    RILL_ASSIGN_OR_RETURN(copies, Stream::Create(*options.device));
  }
  return std::unique_ptr<Placement>(new Placement(options, std::move(copies)));
}

Tensor::Options Placement::gather_memory() const {
  if (copy_stream_.has_value()) return {*options_.device, MemoryKind::kPinned};
  if (options_.pin_memory) return {options_.pin_for, MemoryKind::kPinned};
  return {};
}

absl::Status Placement::Gather(
    Staging* staging, GatheredBatch* batch,
    absl::FunctionRef<absl::Status(TensorDict* rows)> read) const {
  if (!copy_stream_.has_value()) return read(&batch->rows);
  // A stream that failed works again once it was waited for.
  if (!staging->Await().ok()) {
    absl::MutexLock lock(&copy_mutex_);
    copy_stream_->Synchronize().IgnoreError();
  }
  const absl::Status status = read(&staging->rows_);
  // Shares the memory, which the staging keeps when the batch has gone.
  batch->rows = staging->rows_;
  return status;
}

absl::StatusOr<PlacedBatch> Placement::Copy(const TensorDict& rows,
                                            Staging* staging) const {
  PlacedBatch placed;
  // Copy and event are enqueued together, so no other job's copy comes between.
  absl::MutexLock lock(&copy_mutex_);
  RILL_ASSIGN_OR_RETURN(placed.rows,
                        rows.ToAsync(*copy_stream_, &staging->in_flight_));
  absl::StatusOr<Event> event = Event::Record(*copy_stream_);
  if (!event.ok()) {
    // Nobody could tell when the memory is free.
    copy_stream_->Synchronize().IgnoreError();
    return event.status();
  }
  staging->copied_ = std::make_shared<const Event>(*std::move(event));
  placed.copied = staging->copied_;
  return placed;
}

absl::StatusOr<PlacedBatch> Placement::Place(GatheredBatch batch,
                                             Staging* staging) const {
  if (copy_stream_.has_value()) return Copy(batch.rows, staging);
  if (options_.device.has_value()) {
    RILL_ASSIGN_OR_RETURN(batch.rows, batch.rows.To(*options_.device));
  } else if (options_.pin_memory && !batch.rows.is_pinned()) {
    RILL_ASSIGN_OR_RETURN(batch.rows, batch.rows.Pin(options_.pin_for));
  }
  return PlacedBatch{.rows = std::move(batch.rows)};
}

}  // namespace rill::replay_internal
