// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/steps_on_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/current_stream.h"
#include "rill/tensors/dtype.h"

namespace rill::envs_internal {

absl::StatusOr<std::unique_ptr<StepsOnDevice>> StepsOnDevice::Create(
    const Tensor& done, bool sends_ends, size_t transforms) {
  auto made = absl::WrapUnique(new StepsOnDevice(done, sends_ends));
  const auto count = static_cast<int64_t>(transforms);
  RILL_ASSIGN_OR_RETURN(const Tensor zeros,
                        Tensor::Zeros(DType::kInt64, {count}));
  RILL_ASSIGN_OR_RETURN(made->faults_, zeros.To(done.device()));
  const Tensor::Options pinned = {done.device(), MemoryKind::kPinned};
  RILL_ASSIGN_OR_RETURN(made->host_done_,
                        Tensor::Empty(DType::kBool, done.shape(), pinned));
  RILL_ASSIGN_OR_RETURN(made->host_faults_,
                        Tensor::Empty(DType::kInt64, {count}, pinned));
  made->ForgetFaults();
  return made;
}

StepsOnDevice::~StepsOnDevice() { Await().IgnoreError(); }

absl::Status StepsOnDevice::Await() const {
  return last_.has_value() ? last_->Synchronize() : absl::OkStatus();
}

absl::Status StepsOnDevice::Begin() {
  RILL_ASSIGN_OR_RETURN(stream_, CurrentStream(done_.device()));
  // Env: a call comes behind the default stream.
  RILL_ASSIGN_OR_RETURN(const Stream given, Stream::Default(done_.device()));
  RILL_RETURN_IF_ERROR(stream_->WaitFor(given));
  if (!last_.has_value() || last_stream_.value == stream_->handle().value) {
    return absl::OkStatus();
  }
  return stream_->WaitFor(*last_);
}

absl::StatusOr<const uint8_t*> StepsOnDevice::Send(
    absl::Span<const uint8_t> mask) {
  if (!sends_mask_) {
    RILL_RETURN_IF_ERROR(uploads_.Begin(*stream_));
    sends_mask_ = true;
  }
  RILL_ASSIGN_OR_RETURN(
      const auto copy,
      uploads_.Mirror<uint8_t>(static_cast<int64_t>(mask.size())));
  std::memcpy(copy.host, mask.data(), mask.size());
  RILL_RETURN_IF_ERROR(uploads_.Send());
  return copy.device;
}

absl::Status StepsOnDevice::Copy(
    absl::Span<const transforms_internal::LaneCopy> copies,
    const uint8_t* mask) const {
  return transforms_internal::CopyLanes(copies, done_.num_elements(), mask,
                                        *stream_);
}

absl::Status StepsOnDevice::LetEnvironmentWait() const {
  RILL_ASSIGN_OR_RETURN(const Stream default_stream,
                        Stream::Default(done_.device()));
  return default_stream.WaitFor(*stream_);
}

absl::Status StepsOnDevice::End() {
  absl::Status status;
  if (last_.has_value()) {
    status = last_->RecordAgain(*stream_);
  } else {
    absl::StatusOr<Event> event = Event::Record(*stream_);
    status = event.status();
    if (event.ok()) last_ = *std::move(event);
  }
  last_stream_ = stream_->handle();
  if (std::exchange(sends_mask_, false)) {
    absl::StatusOr<Event> sent = Event::Record(*stream_);
    status.Update(sent.status());
    // Without an event nobody could tell when the memory is free.
    if (!sent.ok()) stream_->Synchronize().IgnoreError();
    uploads_.End(sent.ok() ? std::make_shared<const Event>(*std::move(sent))
                           : nullptr);
  }
  return status;
}

void StepsOnDevice::ForgetFaults() {
  std::memset(host_faults_.raw_data(), 0,
              static_cast<size_t>(host_faults_.size_bytes()));
}

int64_t* StepsOnDevice::fault(size_t transform) const {
  return faults_.data<int64_t>() + transform;
}

absl::Status StepsOnDevice::SendEnds() {
  if (!sends_ends_) return absl::OkStatus();
  ends_are_sent_ = true;
  RILL_RETURN_IF_ERROR(host_done_.CopyFromAsync(done_, *stream_));
  return host_faults_.CopyFromAsync(faults_, *stream_);
}

absl::StatusOr<std::optional<StepsOnDevice::Fault>> StepsOnDevice::ReadEnds(
    bool wants_all, std::vector<uint8_t>* done) {
  if (sends_ends_ && !ends_are_sent_) return std::nullopt;
  if (!sends_ends_) {
    if (!wants_all ||
        std::memchr(done->data(), kUnread, done->size()) == nullptr) {
      return std::nullopt;
    }
    RILL_RETURN_IF_ERROR(Begin());
    RILL_RETURN_IF_ERROR(host_done_.CopyFromAsync(done_, *stream_));
    RILL_RETURN_IF_ERROR(stream_->Synchronize());
  } else {
    // The caller has most often waited for this step by now.
    ends_are_sent_ = false;
    RILL_ASSIGN_OR_RETURN(const bool is_complete, last_->IsComplete());
    if (!is_complete) {
      RILL_RETURN_IF_ERROR(last_->Synchronize());
    }
  }
  const bool* const flags = host_done_.data<bool>();
  for (size_t lane = 0; lane < done->size(); ++lane) {
    if ((*done)[lane] == kUnread) (*done)[lane] = flags[lane];
  }
  if (!sends_ends_) return std::nullopt;
  const int64_t* const faults = host_faults_.data<int64_t>();
  const int64_t* const end = faults + host_faults_.num_elements();
  const int64_t* const found =
      std::find_if(faults, end, [](int64_t fault) { return fault != 0; });
  if (found == end) return std::nullopt;
  const Fault fault = {.transform = static_cast<size_t>(found - faults),
                       .fault = *found};
  ForgetFaults();
  RILL_RETURN_IF_ERROR(Begin());
  RILL_RETURN_IF_ERROR(
      stream_->backend()->Fill(stream_->device().index, faults_.raw_data(), 0,
                               faults_.size_bytes(), stream_->handle()));
  RILL_RETURN_IF_ERROR(End());
  return fault;
}

}  // namespace rill::envs_internal
