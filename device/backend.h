// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_BACKEND_H_
#define RILL_DEVICE_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/row_copy.h"

namespace rill {

// Opaque to everybody but the backend that made them. A null stream is the
// default stream of the device; on the CPU every operation is complete when it
// returns.
struct StreamHandle {
  void* value = nullptr;
};
struct EventHandle {
  void* value = nullptr;
};

// The operations of a kind of device: the whole interface between Rill and a
// driver.
// The host's is always there; others are leaves that are chosen by link
// (device/cuda:cuda_backend, device/testing:fake_backend). All pass
// device/conformance.
//
// Thread-safety: thread-safe; operations on one stream keep their order.
// Device/Stream: operations with a stream are enqueued and may not have
//   happened yet when the call returns (never so on the CPU). The caller keeps
//   source and destination alive and unchanged until the stream got there.
//   Nothing here synchronises except what says so.
// Failures: an operation that fails after it was enqueued takes its device
//   along. Work behind it may be dropped, on all streams, and each call for the
//   device from then on gives the error: waiting takes it away from nobody.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual Device::Type type() const = 0;
  // How many devices there are. The first call may start the driver.
  virtual absl::StatusOr<int> NumDevices() = 0;

  // `bytes` > 0, aligned to 64 at least. The CPU offers kPageable; a device
  // offers kDevice and kPinned (host memory that it can copy from and to
  // without staging). RESOURCE_EXHAUSTED names asked and free bytes.
  virtual absl::StatusOr<void*> Allocate(int index, MemoryKind kind,
                                         int64_t bytes) = 0;
  // Waits for nothing: the caller has seen the last use complete.
  virtual void Free(int index, MemoryKind kind, void* data, int64_t bytes) = 0;

  virtual absl::StatusOr<StreamHandle> CreateStream(int index) = 0;
  virtual void DestroyStream(int index, StreamHandle stream) = 0;
  virtual absl::StatusOr<EventHandle> CreateEvent(int index) = 0;
  virtual void DestroyEvent(int index, EventHandle event) = 0;

  // Whether this device copies from and to memory of device `peer` of its type
  // without the host. The first call may open the way.
  virtual absl::StatusOr<bool> ReachesPeer(int /*index*/, int /*peer*/) {
    return false;
  }

  // Copies between any two of: this device, the host (any memory of it). Also
  // between this device and one that it reaches. The ranges must not overlap.
  virtual absl::Status Copy(int index, void* to, const void* from,
                            int64_t bytes, StreamHandle stream) = 0;
  // Sets every byte of memory that this device can reach: its own and pinned.
  virtual absl::Status Fill(int index, void* to, uint8_t value, int64_t bytes,
                            StreamHandle stream) = 0;
  // Row copies (row_copy.h). `rows` is host memory and may be reused when the
  // call returns; the bases are memory that this device can reach, as with
  // Fill. FAILED_PRECONDITION where the thread captures a graph
  // (graphs/graph.h): its launches would copy the rows of the call.
  virtual absl::Status GatherRows(int index,
                                  absl::Span<const RowColumn> columns,
                                  absl::Span<const int64_t> rows,
                                  StreamHandle stream) = 0;
  virtual absl::Status ScatterRows(int index,
                                   absl::Span<const RowColumn> columns,
                                   absl::Span<const int64_t> rows,
                                   StreamHandle stream) = 0;

  // Marks the point that the stream has reached.
  virtual absl::Status Record(int index, EventHandle event,
                              StreamHandle stream) = 0;
  // Makes later work on `stream` wait for the event, which may be of another
  // device of this type; the host goes on.
  virtual absl::Status Wait(int index, StreamHandle stream,
                            EventHandle event) = 0;
  // Block the host until the work so far, or the event, is done. Errors of
  // enqueued operations come out here at the latest.
  virtual absl::Status SynchronizeStream(int index, StreamHandle stream) = 0;
  virtual absl::Status SynchronizeEvent(int index, EventHandle event) = 0;
  virtual absl::StatusOr<bool> IsComplete(int index, EventHandle event) = 0;
};

// Makes `backend` answer for its device type; a second one for the same type
// replaces the first, which must have no live buffers. The host backend is
// always there.
void RegisterBackend(std::unique_ptr<Backend> backend);

// FAILED_PRECONDITION where no backend of that type was linked in, with what to
// do ("built without CUDA; build with --repo_env=RILL_CUDA=hermetic and link
// @rill//device/cuda:cuda_backend"). INVALID_ARGUMENT where the index is too
// large. Asking for the CPU touches no other backend.
absl::StatusOr<Backend*> GetBackend(Device device);

}  // namespace rill

#endif  // RILL_DEVICE_BACKEND_H_
