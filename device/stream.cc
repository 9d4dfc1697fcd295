// SPDX-License-Identifier: Apache-2.0
#include "rill/device/stream.h"

#include "rill/base/status_macros.h"
#include "rill/device/capturing.h"

namespace rill {

using device_internal::CheckNotCapturing;

absl::StatusOr<Stream> Stream::Create(Device device) {
  Stream stream;
  RILL_ASSIGN_OR_RETURN(stream.backend_, GetBackend(device));
  RILL_ASSIGN_OR_RETURN(stream.handle_,
                        stream.backend_->CreateStream(device.index));
  stream.device_ = device;
  stream.owned_ = true;
  return stream;
}

absl::StatusOr<Stream> Stream::Default(Device device) {
  return Borrow(device, StreamHandle());
}

absl::StatusOr<Stream> Stream::Borrow(Device device, StreamHandle handle) {
  Stream stream;
  RILL_ASSIGN_OR_RETURN(stream.backend_, GetBackend(device));
  stream.device_ = device;
  stream.handle_ = handle;
  return stream;
}

Stream::~Stream() {
  if (owned_) backend_->DestroyStream(device_.index, handle_);
}

// Exchanged: what this one owned is destroyed with `other`.
Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(backend_, other.backend_);
  std::swap(handle_, other.handle_);
  std::swap(owned_, other.owned_);
  return *this;
}

absl::Status Stream::Synchronize() const {
  RILL_RETURN_IF_ERROR(CheckNotCapturing("Stream::Synchronize"));
  return backend_->SynchronizeStream(device_.index, handle_);
}

absl::Status Stream::WaitFor(const Event& event) const {
  RILL_RETURN_IF_ERROR(CheckNotCapturing("Stream::WaitFor"));
  return backend_->Wait(device_.index, handle_, event.handle());
}

absl::Status Stream::WaitFor(const Stream& ahead) const {
  if (ahead.device_ == device_ && ahead.handle_.value == handle_.value) {
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(const Event event, Event::Record(ahead));
  return WaitFor(event);
}

absl::StatusOr<Event> Event::Record(const Stream& stream) {
  RILL_RETURN_IF_ERROR(CheckNotCapturing("Event::Record"));
  Event event;
  RILL_ASSIGN_OR_RETURN(event.handle_,
                        stream.backend()->CreateEvent(stream.device().index));
  event.device_ = stream.device();
  // Set before Record, so that the event is destroyed where that fails.
  event.backend_ = stream.backend();
  RILL_RETURN_IF_ERROR(event.backend_->Record(event.device_.index,
                                              event.handle_, stream.handle()));
  return event;
}

absl::Status Event::RecordAgain(const Stream& stream) {
  RILL_RETURN_IF_ERROR(CheckNotCapturing("Event::RecordAgain"));
  if (stream.device() != device_) {
    return InvalidArgument("Event::RecordAgain: stream: got one of ",
                           stream.device().ToString(), ", want one of ",
                           device_.ToString());
  }
  return backend_->Record(device_.index, handle_, stream.handle());
}

Event::~Event() {
  if (backend_ != nullptr) backend_->DestroyEvent(device_.index, handle_);
}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(backend_, other.backend_);
  std::swap(handle_, other.handle_);
  return *this;
}

absl::Status Event::Synchronize() const {
  RILL_RETURN_IF_ERROR(CheckNotCapturing("Event::Synchronize"));
  return backend_->SynchronizeEvent(device_.index, handle_);
}

absl::StatusOr<bool> Event::IsComplete() const {
  return backend_->IsComplete(device_.index, handle_);
}

absl::StatusOr<bool> ReachesPeer(Device device, Device peer) {
  if (device.type != peer.type) return false;
  RILL_ASSIGN_OR_RETURN(Backend* const backend, GetBackend(device));
  return backend->ReachesPeer(device.index, peer.index);
}

absl::Status CopyAsync(void* to, const void* from, int64_t bytes,
                       const Stream& stream) {
  return stream.backend()->Copy(stream.device().index, to, from, bytes,
                                stream.handle());
}

absl::Status CopyBlocking(void* to, const void* from, int64_t bytes,
                          Device device) {
  RILL_ASSIGN_OR_RETURN(const Stream stream, Stream::Default(device));
  RILL_RETURN_IF_ERROR(CopyAsync(to, from, bytes, stream));
  return stream.Synchronize();
}

}  // namespace rill
