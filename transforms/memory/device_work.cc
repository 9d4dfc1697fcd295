// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/memory/device_work.h"

#include "rill/base/status_macros.h"
#include "rill/device/capturing.h"
#include "rill/device/current_stream.h"
#include "rill/device/has_ended.h"

namespace rill::transforms_internal {

DeviceWork::~DeviceWork() {
  absl::MutexLock lock(&mutex_);
  for (const InFlight& work : in_flight_) work.done.Synchronize().IgnoreError();
}

absl::Status DeviceWork::Call::Begin(Device device) {
  RILL_ASSIGN_OR_RETURN(stream_, CurrentStream(device));
  // Those of earlier calls, in order. An error is said to who waits for the
  // stream; its work touches nothing any more.
  std::deque<InFlight>& in_flight = work_->in_flight_;
  absl::MutexLock lock(&work_->mutex_);
  while (!in_flight.empty() &&
         device_internal::HasEnded(in_flight.front().done).value_or(true)) {
    in_flight.pop_front();
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DeviceWork::Call::Take(DType dtype, const Shape& shape) {
  RILL_ASSIGN_OR_RETURN(
      Tensor tensor, work_->spare_.Take(dtype, shape,
                                        {.device = stream_->device(),
                                         .memory_kind = MemoryKind::kDevice}));
  Keep(tensor);
  return tensor;
}

absl::StatusOr<Tensor> DeviceWork::Call::CopyBytes(const void* bytes,
                                                   int64_t count) {
  const Device device = stream_->device();
  absl::MutexLock lock(&work_->mutex_);
  for (const Numbers& made : work_->numbers_) {
    if (made.key != bytes || made.tensor.device() != device) continue;
    Keep(made.tensor);
    return made.tensor;
  }
  RILL_ASSIGN_OR_RETURN(
      Tensor made,
      Tensor::Empty(DType::kUInt8, {count},
                    {.device = device, .memory_kind = MemoryKind::kDevice}));
  // In a stream of its own, which waits for no other work.
  RILL_ASSIGN_OR_RETURN(const Stream stream, Stream::Create(device));
  RILL_RETURN_IF_ERROR(CopyAsync(made.raw_data(), bytes, count, stream));
  RILL_RETURN_IF_ERROR(stream.Synchronize());
  work_->numbers_.push_back({bytes, made});
  Keep(made);
  return made;
}

absl::Status DeviceWork::Call::End() {
  if (kept_.empty()) return absl::OkStatus();
  std::vector<Tensor> kept = std::move(kept_);
  kept_.clear();
  if (device_internal::IsCapturing()) {
    absl::MutexLock lock(&work_->mutex_);
    work_->captured_.insert(work_->captured_.end(), kept.begin(), kept.end());
    return absl::OkStatus();
  }
  absl::StatusOr<Event> done = Event::Record(*stream_);
  if (!done.ok()) {
    // Nobody could tell when the memory is free.
    stream_->Synchronize().IgnoreError();
    return done.status();
  }
  absl::MutexLock lock(&work_->mutex_);
  work_->in_flight_.push_back({*std::move(done), std::move(kept)});
  return absl::OkStatus();
}

}  // namespace rill::transforms_internal
