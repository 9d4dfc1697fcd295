// SPDX-License-Identifier: Apache-2.0
// Where batches go to a device, each job gathers into page-locked memory that
// it keeps. One stream copies, and the batch has the event of its copy. The
// memory is written again once that event is complete. Rows that lie on a
// device are gathered and worked on in that stream, and the event is behind all
// of it. SampleInto waits for the event, SamplePending hands it out.
#include "rill/replay/sampling/placement.h"

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"

namespace rill::replay_internal {
namespace {

// The device of the first leaf that lies on one; the CPU where none does.
Device DeviceOf(const TensorDict& rows) {
  Device device = Device::Cpu();
  rows.ForEachLeaf([&device](absl::string_view, const Tensor& leaf) {
    if (device.is_cpu()) device = leaf.device();
  });
  return device;
}

}  // namespace

void Placement::Staging::Await() {
  if (end_ != nullptr) end_->Synchronize().IgnoreError();
  end_ = nullptr;
  in_flight_.clear();
}

Placement::Making::Making(const Placement& placement,
                          const absl::Status* status)
    : placement_(placement), status_(status) {
  if (placement.stream_.has_value()) scope_.emplace(*placement.stream_);
}

absl::StatusOr<std::unique_ptr<Placement>> Placement::Create(
    const Options& options) {
  std::optional<Stream> stream;
  if (!options.storage_device.is_cpu()) {
    RILL_ASSIGN_OR_RETURN(stream, Stream::Create(options.storage_device));
  } else if (options.device.has_value() && !options.device->is_cpu()) {
    RILL_ASSIGN_OR_RETURN(stream, Stream::Create(*options.device));
  }
  return std::unique_ptr<Placement>(new Placement(options, std::move(stream)));
}

Tensor::Options Placement::gather_memory() const {
  if (copies()) return {*options_.device, MemoryKind::kPinned};
  if (options_.pin_memory) return {options_.pin_for, MemoryKind::kPinned};
  return {};
}

absl::Status Placement::WaitFor(const Stream& stream) const {
  return stream_->WaitFor(stream);
}

void Placement::AwaitAll() const {
  if (stream_.has_value()) stream_->Synchronize().IgnoreError();
}

absl::Status Placement::Gather(
    Staging* staging, GatheredBatch* batch,
    absl::FunctionRef<absl::Status(TensorDict* rows)> read) const {
  if (!copies()) return read(&batch->rows);
  staging->Await();
  const absl::Status status = read(&staging->rows_);
  // Shares the memory, which the staging keeps when the batch has gone.
  batch->rows = staging->rows_;
  return status;
}

absl::StatusOr<PlacedBatch> Placement::WithEnd(TensorDict rows,
                                               const Stream& stream,
                                               Staging* staging) {
  absl::StatusOr<Event> end = Event::Record(stream);
  if (!end.ok()) {
    // Nobody could tell when the memory is free.
    stream.Synchronize().IgnoreError();
    return end.status();
  }
  staging->end_ = std::make_shared<const Event>(*std::move(end));
  return PlacedBatch{.rows = std::move(rows), .copied = staging->end_};
}

absl::StatusOr<PlacedBatch> Placement::Copy(const TensorDict& rows,
                                            Staging* staging) const {
  // Copy and event are enqueued together, so no other job's copy comes between.
  absl::MutexLock lock(&copy_mutex_);
  RILL_ASSIGN_OR_RETURN(TensorDict moved,
                        rows.ToAsync(*stream_, &staging->in_flight_));
  return WithEnd(std::move(moved), *stream_, staging);
}

absl::StatusOr<PlacedBatch> Placement::Place(GatheredBatch batch,
                                             Staging* staging) const {
  if (copies()) return Copy(batch.rows, staging);
  if (stream_.has_value()) {
    if (!options_.device.has_value()) {
      return WithEnd(std::move(batch.rows), *stream_, staging);
    }
    if (*options_.device == options_.storage_device) {
      // Leaves that a transform has made elsewhere are copied.
      if (!staging->in_flight_.empty()) staging->Await();
      return Copy(batch.rows, staging);
    }
    RILL_RETURN_IF_ERROR(stream_->Synchronize());
  }
  if (options_.device.has_value()) {
    RILL_ASSIGN_OR_RETURN(batch.rows, batch.rows.To(*options_.device));
  } else if (options_.pin_memory && !batch.rows.is_pinned()) {
    RILL_ASSIGN_OR_RETURN(batch.rows, batch.rows.Pin(options_.pin_for));
  } else if (const Device device = DeviceOf(batch.rows); !device.is_cpu()) {
    RILL_ASSIGN_OR_RETURN(const Stream stream, CurrentStream(device));
    return WithEnd(std::move(batch.rows), stream, staging);
  }
  return PlacedBatch{.rows = std::move(batch.rows)};
}

}  // namespace rill::replay_internal
