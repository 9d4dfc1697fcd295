// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_STREAM_H_
#define RILL_DEVICE_STREAM_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/backend.h"
#include "rill/device/device.h"

namespace rill {

class Event;

// A queue of device work. Streams are always explicit: nothing in Rill uses a
// stream that it was not handed, in a call or by a StreamScope
// (current_stream.h), except the device's default one.
// Thread-safety: thread-safe; who needs an order between threads makes it.
class Stream {
 public:
  // A new stream. On the CPU it costs nothing and does everything at once.
  static absl::StatusOr<Stream> Create(Device device);
  // The device's default stream; not owned.
  static absl::StatusOr<Stream> Default(Device device);
  // A stream of somebody else's, say a simulator's or torch's: a cudaStream_t
  // as {.value = stream}. Its owner destroys it, after this object and once the
  // work that was given to it is done; events may live on. Work keeps its place
  // among the owner's.
  static absl::StatusOr<Stream> Borrow(Device device, StreamHandle handle);

  ~Stream();
  Stream(Stream&& other) noexcept { *this = std::move(other); }
  Stream& operator=(Stream&& other) noexcept;

  Device device() const { return device_; }
  StreamHandle handle() const { return handle_; }
  Backend* backend() const { return backend_; }

  // Blocks the host until all work so far is done.
  absl::Status Synchronize() const;
  // Later work on this stream waits for `event`; the host goes on.
  absl::Status WaitFor(const Event& event) const;
  // The same of what `ahead` has so far: an event, or nothing where it is this
  // stream.
  absl::Status WaitFor(const Stream& ahead) const;

 private:
  Stream() = default;

  Device device_;
  Backend* backend_ = nullptr;
  StreamHandle handle_;
  bool owned_ = false;
};

// A point in a stream's work. Thread-safety: thread-safe.
class Event {
 public:
  static absl::StatusOr<Event> Record(const Stream& stream);

  ~Event();
  Event(Event&& other) noexcept { *this = std::move(other); }
  Event& operator=(Event&& other) noexcept;

  // The point is another one from now on; what waits for the one before goes on
  // waiting for that. After an error it is either.
  absl::Status RecordAgain(const Stream& stream);

  EventHandle handle() const { return handle_; }

  // Blocks the host until the point is reached.
  absl::Status Synchronize() const;
  absl::StatusOr<bool> IsComplete() const;

 private:
  Event() = default;

  Device device_;
  Backend* backend_ = nullptr;
  EventHandle handle_;
};

// Whether streams of `device` copy from and to memory of device `peer` without
// the host. Errors of GetBackend.
absl::StatusOr<bool> ReachesPeer(Device device, Device peer);

// Copies `bytes` between host and one device, or within either, in the order of
// `stream`. Also between its device and one that this reaches. See Backend for
// who keeps what alive.
absl::Status CopyAsync(void* to, const void* from, int64_t bytes,
                       const Stream& stream);

// The same on the default stream of `device`, complete when it returns.
absl::Status CopyBlocking(void* to, const void* from, int64_t bytes,
                          Device device);

}  // namespace rill

#endif  // RILL_DEVICE_STREAM_H_
