// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CURRENT_STREAM_H_
#define RILL_DEVICE_CURRENT_STREAM_H_

#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"

namespace rill {

// While it lives, `stream` is its thread's current stream of its device. The
// innermost one counts, as with torch's StreamGuard.
//
// Calls that work on tensors of a device and are handed no stream (transforms,
// units) enqueue on the current one, and the host goes on. Their caller has the
// tensors' values ready at that point of that stream, and keeps what the calls
// read and write alive until the stream got there.
// Thread-safety: of one thread. Scopes end in reverse order of their beginning.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  friend absl::StatusOr<Stream> CurrentStream(Device device);

  const Device device_;
  const StreamHandle handle_;
  const StreamScope* const outer_;
};

// This thread's current stream of `device`, borrowed; without a scope the
// device's default stream. Errors of GetBackend. Cost: no allocation.
absl::StatusOr<Stream> CurrentStream(Device device);

}  // namespace rill

#endif  // RILL_DEVICE_CURRENT_STREAM_H_
